"""A pytest plugin: a property that fails says so at once. Making its example small is for people, not for a judge."""

from __future__ import annotations

from hypothesis import Phase, settings

settings.register_profile("unshrunk", phases=[Phase.explicit, Phase.generate])
settings.load_profile("unshrunk")
