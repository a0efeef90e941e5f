"""Stands between an effect and its provider: notes each send before anybody could die, and loses answers on order.

Runs inside a drill's process, hooked into `runtime.crash.sending`. A fault befalls the first send of one effect only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Any

from milepost.drill.order import Send
from milepost.errors import MilepostError
from milepost.protocol.outcomes import Applied, NotApplied
from milepost.protocol.spec import EffectSpec
from milepost.runtime.scope import RuntimeCall

RETRY_AFTER_S = 30.0
FAULTS = ("lost", "timeout", "busy")
"""Kinds of trials in which a send goes wrong; `outcome.KINDS` says how."""


class Sends:
    """The hook: `fault` is what befalls the first send of the effect at `path`; real waits make 429 a short one."""

    def __init__(self, notes: Path, fault: str | None = None, path: str = "", retry_after_s: float = 1.0) -> None:
        self._notes, self._fault, self._path, self._retry_after_s = notes, fault, path, retry_after_s

    def __call__(self, call: RuntimeCall) -> Callable[..., Any]:
        function = call.spec.function

        def send(*args: Any, **kwargs: Any) -> Any:
            fault = self._before(call, args)
            return self._after(call, args, function(*args, **kwargs), fault)

        async def send_awaited(*args: Any, **kwargs: Any) -> Any:
            fault = self._before(call, args)
            return self._after(call, args, await function(*args, **kwargs), fault)

        return wraps(function)(send_awaited if call.spec.is_async else send)

    def _befalls(self, call: RuntimeCall) -> str | None:
        """Return the fault of this send: the effect's first one only, whichever process makes it."""
        if self._fault is None or call.path != self._path:
            return None
        try:
            os.close(os.open(self._notes.with_name("fault"), os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return None
        return self._fault

    def _before(self, call: RuntimeCall, args: tuple[Any, ...]) -> str | None:
        """Return what befalls a send after its call, if anything does. Raises: what befalls it instead of its call."""
        fault = self._befalls(call)
        if fault not in ("timeout", "busy"):
            return fault
        self._note(Send(call.path, str(args[0]), "raised", call.spec.lookup is not None))
        if fault == "timeout":
            raise _retried(call.spec, TimeoutError("drill: no answer in time"))
        raise _turned_away(call.spec, self._retry_after_s)

    def _after(self, call: RuntimeCall, args: tuple[Any, ...], value: Any, fault: str | None) -> Any:
        """Note a send that was answered; return its answer, or raise as if it was lost."""
        result, ref = _encoded(call.spec, value)
        self._note(Send(call.path, str(args[0]), "returned", call.spec.lookup is not None, result, ref))
        if fault == "lost":
            raise _retried(call.spec, ConnectionError("drill: the answer was lost"))
        return value

    def _note(self, send: Send) -> None:
        """Crash: the send is noted, or was not made: nothing dies between the provider's answer and this line."""
        line = json.dumps(asdict(send)) + "\n"
        descriptor = os.open(self._notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line.encode("utf-8"))
        finally:
            os.close(descriptor)


def _encoded(spec: EffectSpec, value: Any) -> tuple[str | None, str | None]:
    """Return result (JSON) and reference as a person would give them who looks the send up."""
    result, ref = (value.result, value.ref) if isinstance(value, Applied) else (value, None)
    if ref is None and spec.ref is not None:
        ref = spec.ref(result)
    try:
        data = spec.output.encode(result)
    except MilepostError:
        return None, ref
    if spec.output.media_type == "application/json":
        return data.decode("utf-8"), ref
    return (json.dumps(result) if isinstance(result, str) else None), ref


def _kinds(spec: EffectSpec) -> tuple[type[Exception], ...]:
    """Return the errors its policy tries again."""
    if spec.retry is None:
        return ()
    return spec.retry.on if isinstance(spec.retry.on, tuple) else (spec.retry.on,)


def _proofs(spec: EffectSpec) -> tuple[type[BaseException], ...]:
    """Return the errors that prove that nothing happened."""
    return (NotApplied, *spec.rejected)


def _retried(spec: EffectSpec, error: Exception) -> Exception:
    """Return an error that says nothing about what happened, of a class the policy tries again if there is one."""
    if isinstance(error, _kinds(spec)):
        return error
    kind = next((kind for kind in _kinds(spec) if not issubclass(kind, _proofs(spec))), None)
    return error if kind is None else _made(kind, str(error))


def _turned_away(spec: EffectSpec, retry_after_s: float) -> Exception:
    """Return an error that proves that nothing happened, with the wait the provider asks for."""
    kind = next((kind for kind in _kinds(spec) if issubclass(kind, _proofs(spec))), NotApplied)
    error = _made(kind, "drill: 429, too many requests")
    error.retry_after = retry_after_s  # type: ignore[attr-defined]
    return error


def _made(kind: type[Exception], text: str) -> Exception:
    """Make an exception of a user's class without knowing what its constructor wants."""
    drilled = type(kind.__name__, (kind,), {"__init__": Exception.__init__, "__str__": lambda self: text})
    made: Exception = drilled(text)
    return made
