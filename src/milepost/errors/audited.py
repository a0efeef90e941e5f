"""A file with an audit record that does not hold: altered, incomplete (exit status 3), or not to be told (7)."""

from __future__ import annotations

from milepost.errors.refused import RefusedError
from milepost.errors.tree import MilepostError


class AuditAltered(RefusedError):
    code = "audit-altered"
    sentence = "{file}, line {line} ({what}): {reason}"
    hint = "Do not rely on this file: have the run exported again from its store."


class AuditIncomplete(RefusedError):
    code = "audit-incomplete"
    sentence = "{file}, line {line} ({what}): {reason}"
    hint = "Something is missing: get the whole file again, or have the run exported again from its store."


class UnprovenError(MilepostError):
    """What was looked at can be neither trusted nor refused with what is here."""

    code = "unproven"
    sentence = "{file}: {reason}; it can be neither trusted nor refused"
    hint = "Set MILEPOST_SEAL_KEY to the key of the run, and try again."
    exit_status = 7


class AuditUnproven(UnprovenError):
    code = "audit-unproven"
