"""Numbers that are declared or said: amounts, counts, durations, each with a bound: nothing overflows later. Pure.

What a body says is refused where it says it, what is declared where it is declared. Called by the declarations, by
`spent` and `heartbeat`, and by whoever counts what was said.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from milepost.errors import BadOption

COUNT_MAX = 10**12
"""Largest number that is declared or said."""
DIGITS_MAX = 50
"""Digits of an amount, and its places behind the point."""
CURRENCY_LENGTH_MAX = 32
"""Characters of a currency's name."""
DURATION_MAX = timedelta(days=36_500)
"""Longest duration: added to any time of ours it is still a time."""
SHOWN_LENGTH_MAX = 80
"""Characters of what was found that a message shows."""
_EXACT = Context(prec=4 * DIGITS_MAX, traps=[])
"""Sums do not depend on what a user's code set for decimals in its thread."""
_WHAT_TO_SAY = "Say what the call took as the provider tells it: whole tokens, and a cost that is a number from 0 on."


def added(one: Decimal, other: Decimal) -> Decimal:
    """Add two amounts exactly."""
    return _EXACT.add(one, other)


def amount_in(value: object) -> Decimal | None:
    """Read an amount from 0 on; None when it is none: no number, negative, not finite, or past a bound."""
    if isinstance(value, bool) or not isinstance(value, Decimal | int | float | str):
        return None
    try:
        amount = Decimal(value if isinstance(value, Decimal | int) else str(value))
    except (InvalidOperation, ValueError):
        return None
    if not amount.is_finite() or not 0 <= amount <= COUNT_MAX:
        return None
    _, digits, exponent = amount.as_tuple()
    fits = len(digits) <= DIGITS_MAX and isinstance(exponent, int) and exponent >= -DIGITS_MAX
    return (amount or Decimal(0)) if fits else None


def is_count(value: object) -> bool:
    """Say whether something is a whole number from 0 on, within the bound."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= COUNT_MAX


def is_number(value: object, least: float, most: float) -> bool:
    """Say whether something is a number within bounds; NaN and the infinities are in none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def checked_duration(where: str, value: Any, *, least: timedelta = timedelta.resolution) -> None:
    """Refuse what is no duration, and one past the bound. Raises: BadOption."""
    if isinstance(value, timedelta) and least <= value <= DURATION_MAX:
        return
    from_on = "above zero" if least else "from zero on"
    raise BadOption(
        where=where, reason=f"expected a timedelta {from_on}, at most {DURATION_MAX.days:,} days, found {shown(value)}"
    )


def checked_spending(cost: Any, currency: Any, input_tokens: Any, output_tokens: Any) -> dict[str, Any]:
    """Return what a body says it spent as a record holds it. Raises: BadOption."""
    for name, tokens in (("input_tokens", input_tokens), ("output_tokens", output_tokens)):
        if not is_count(tokens):
            raise _bad_spending(name, f"a whole number from 0 to {COUNT_MAX:,}", tokens)
    amount = amount_in(cost)
    if amount is None:
        raise _bad_spending("cost", f"an amount from 0 to {COUNT_MAX:,}, of at most {DIGITS_MAX} digits", cost)
    if not isinstance(currency, str) or not currency.isprintable() or len(currency) > CURRENCY_LENGTH_MAX:
        raise _bad_spending("currency", f"at most {CURRENCY_LENGTH_MAX} printable characters", currency)
    counts = {"input_tokens": int(input_tokens), "output_tokens": int(output_tokens)}
    return {"cost": str(amount), "currency": currency, **counts}


def checked_progress(done: Any, total: Any) -> None:
    """Refuse what a heartbeat cannot say. Raises: BadOption."""
    for name, value in (("done", done), ("total", total)):
        if not is_number(value, 0, COUNT_MAX) and not (name == "total" and value is None):
            reason = f"expected a number from 0 to {COUNT_MAX:,}, found {shown(value)}"
            raise BadOption(where=f"heartbeat({name}=…)", reason=reason, hint="Say how far the step is in numbers.")


def shown(value: object) -> str:
    """Say what was found, in a line of bounded length."""
    if not isinstance(value, bool | int | float | str | Decimal | timedelta | None):
        return f"a {type(value).__name__}"
    if isinstance(value, int) and abs(value) > COUNT_MAX**2:
        return "a whole number of more than 24 digits"  # Python refuses to write one of thousands
    text = repr(value)
    return text if len(text) <= SHOWN_LENGTH_MAX else f"{text[:SHOWN_LENGTH_MAX]}…"


def _bad_spending(name: str, expected: str, found: object) -> BadOption:
    reason = f"expected {expected}, found {shown(found)}"
    return BadOption(where=f"spent({name}=…)", reason=reason, hint=_WHAT_TO_SAY)
