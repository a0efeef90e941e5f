"""The task most effect tests run: one invoice is posted to a provider. What differs is declared by each test."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from provider import Provider

from milepost import CannotTell, Found, Key, NotFound, Task, effect, task

SETTLE = timedelta(seconds=30)


def posting(
    provider: Provider,
    *,
    lookup: bool = False,
    settle: timedelta = SETTLE,
    amount: Callable[[], int] = lambda: 10,
    send: Callable[[Provider, str, int], Any] | None = None,
    **options: Any,
) -> Task[[str], Any]:
    """Return a task with one effect. `amount` is asked on each journey: change it and the request changes."""

    def find_posting(key: Key, invoice: str, amount: int) -> Found[Any] | NotFound | CannotTell:
        return provider.find(key)

    asked = {"lookup": find_posting, "settle": settle} if lookup else {}

    @effect(provider="accounting", **asked, **options)
    def post_invoice(key: Key, invoice: str, amount: int) -> Any:
        if send is not None:
            return send(provider, str(key), amount)
        return provider.apply(key, [invoice, amount])

    @task(permissions=["accounting:write"])
    def reconcile_invoice(invoice: str) -> Any:
        return post_invoice(invoice, amount())

    return reconcile_invoice
