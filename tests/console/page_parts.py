"""A page taken apart as a browser would: its tags, their attributes, its text. What is inert is judged on these."""

from __future__ import annotations

from html.parser import HTMLParser


class Parts(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)

    def dangers(self) -> list[str]:
        """Return what could run, load from elsewhere or lead elsewhere: nothing on a page of ours."""
        return [
            f"<{tag} {name}={value}>"
            for tag, given in self.tags
            for name, value in given.items()
            if _bad(tag, name, value)
        ] + [f"<{tag}>" for tag, given in self.tags if _never(tag, given)]


def _bad(tag: str, name: str, value: str) -> bool:
    if name.startswith("on") or name in ("style", "srcdoc", "formaction", "background"):
        return True
    if name in ("href", "src", "action", "xlink:href", "hx-get", "hx-post", "data", "poster", "srcset"):
        return not value.startswith(("/", "#")) or value.startswith("//")
    return False


def _never(tag: str, given: dict[str, str]) -> bool:
    if tag in ("iframe", "object", "embed", "style", "base", "foreignobject", "video", "audio", "template", "math"):
        return True
    return (tag == "script" and not given.get("src", "").startswith("/static/")) or (
        tag == "img" and not given.get("src", "").startswith("/static/")
    )
