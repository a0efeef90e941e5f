"""What a step or an effect declares about approval: when, by whom, by how many, for how long, in which words. Pure.

Checked where the function is declared (`declare`), read by `approval` when the call is about to happen and by whoever
shows a role definition.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from milepost.errors import BadOption
from milepost.protocol.amounts import checked_duration, shown
from milepost.protocol.failure import kept_text
from milepost.records.arguments import ArgumentsCodec
from milepost.records.frozen import frozen
from milepost.records.identity import Identity
from milepost.records.shown import cut_to_size

Summary = str | Callable[..., str]
NEEDED_MAX = 20
"""Approvals one question can need."""
SUMMARY_SIZE_MAX = 500
"""Bytes of a summary that are shown."""


@frozen
class Approving:
    """Who must approve. `expires` counts from when an approval is given; None: it holds until it is used."""

    before: bool = False  # the body or the send
    after: bool = False  # a step's output, before its checkpoint
    approvers: tuple[str, ...] = ()  # names, users or groups; () is anybody but the agent itself
    needed: int = 1
    expires: timedelta | None = None
    summary: Summary | None = None

    def in_words(self) -> str:
        """Say it in a line: `2 of finance, ana@host; each holds 1 day`."""
        who = ", ".join(self.approvers) or "anybody but the agent"
        held = "" if self.expires is None else f"; each holds {str(self.expires).removesuffix(', 0:00:00')}"
        return f"{self.needed} of {who}{self._too_few()}{held}"

    def _too_few(self) -> str:
        """Say when those named cannot be enough. A name with an @ is a person's, as far as anybody can tell."""
        people = {Identity(name).user.casefold() for name in self.approvers if "@" in name}
        all_are = self.approvers and all("@" in name for name in self.approvers)
        return " (never enough, unless one of them is a group)" if all_are and len(people) < self.needed else ""

    @staticmethod
    def recorded(about: Mapping[str, Any]) -> Approving:
        """Return the rule that a question of an approval was asked under; its summary is not kept."""
        seconds = about.get("expires_s")
        return Approving(
            before=about["when"] == "before",
            after=about["when"] == "after",
            approvers=tuple(map(str, about.get("approvers", ()))),
            needed=int(about["approvals"]),
            expires=timedelta(seconds=float(seconds)) if seconds is not None else None,
        )

    def said(self, arguments: ArgumentsCodec, bound: Mapping[str, Any]) -> str:
        """Return the summary of a call, "" without one. A summary that fails must not hide what is asked."""
        if self.summary is None:
            return ""
        try:
            args, kwargs = arguments.spread(bound)
            text = self.summary.format(**bound) if isinstance(self.summary, str) else self.summary(*args, **kwargs)
            return kept_text(str(text), SUMMARY_SIZE_MAX)
        except Exception as error:  # noqa: BLE001 – the user's summary=: the exact request is shown all the same
            return cut_to_size(f"(summary= failed: {type(error).__name__})", SUMMARY_SIZE_MAX)


def approving(
    where: str,
    arguments: ArgumentsCodec,
    *,
    approve: str = "",
    review: str = "",
    approvers: Sequence[str] | None = None,
    approvals: int = 1,
    approval_expires: timedelta | None = None,
    summary: Summary | None = None,
) -> Approving | None:
    """Check what a decorator was given about approval; None when it asks for none. Raises: BadOption."""
    _check_word(where, "approve", approve, "before")
    _check_word(where, "review", review, "after")
    _check_people(where, approvers, approvals)
    if approval_expires is not None:
        checked_duration(f"{where}, approval_expires=", approval_expires)
    _check_summary(where, summary, arguments)
    if approve or review:
        found = (_in_order(approvers or ()), approvals, approval_expires, summary)
        return Approving(bool(approve), bool(review), *found)
    if approvers is not None or approvals != 1 or approval_expires is not None or summary is not None:
        reason = 'nothing asks for an approval: write approve="before", on a step also review="after"'
        raise BadOption(where=where, reason=reason)
    return None


def _check_word(where: str, option: str, found: str, expected: str) -> None:
    if found not in ("", expected):
        raise BadOption(where=f"{where}, {option}=", reason=f'expected "{expected}", found {found!r}')


def _check_people(where: str, approvers: Sequence[str] | None, approvals: int) -> None:
    if approvers is not None:
        _check_approvers(where, approvers)
    if type(approvals) is not int or not 1 <= approvals <= NEEDED_MAX:
        raise BadOption(where=f"{where}, approvals=", reason=f"expected 1 to {NEEDED_MAX}, found {shown(approvals)}")


def _check_approvers(where: str, approvers: Sequence[str]) -> None:
    """Refuse what names nobody: a list that came out empty must not mean that anybody may."""
    is_listed = (
        isinstance(approvers, Collection)
        and not isinstance(approvers, str)
        and all(isinstance(name, str) and name.strip() for name in approvers)
    )
    if is_listed and not approvers:
        reason = f"expected at least one name, found {approvers!r}; approvers=None lets anybody but the agent approve"
        raise BadOption(where=f"{where}, approvers=", reason=reason)
    if not is_listed or len(set(approvers)) != len(approvers):
        reason = f'expected different names, users or groups, such as ("finance", "ana@host"), found {approvers!r}'
        raise BadOption(where=f"{where}, approvers=", reason=reason)


def _in_order(approvers: Sequence[str]) -> tuple[str, ...]:
    """Return the approvers in an order that is the same in each process: an approval is bound to it."""
    return tuple(sorted(approvers) if isinstance(approvers, set | frozenset) else approvers)


def _check_summary(where: str, summary: Summary | None, arguments: ArgumentsCodec) -> None:
    if summary is None:
        return
    where = f"{where}, summary="
    if isinstance(summary, str):
        _check_format(where, summary, arguments)
    elif not callable(summary) or inspect.iscoroutinefunction(summary):
        raise BadOption(
            where=where, reason=f"expected a format string or a function of the arguments, found {summary!r}"
        )


def _check_format(where: str, summary: str, arguments: ArgumentsCodec) -> None:
    import string  # it compiles patterns, and few summaries are formats

    try:
        fields = [name for _, name, _, _ in string.Formatter().parse(summary) if name is not None]
    except ValueError as error:
        raise BadOption(where=where, reason=f"{summary!r} is no format string: {error}") from None
    for name in fields:
        if name.split(".")[0].split("[")[0] not in arguments.parameters:
            known = ", ".join(arguments.parameters) or "none"
            raise BadOption(where=where, reason=f"{{{name}}} is not among its parameters: {known}")
