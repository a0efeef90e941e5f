"""Purchase orders: the SQLite database of what was ordered, read by the matching step, written by the generator.

Amounts are text in the database and `Decimal` here: SQLite has no decimal type, and a float would round.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import ClassVar

SCHEMA = """
create table orders (
    id integer primary key, number text not null unique, supplier_id text not null, supplier text not null,
    currency text not null, status text not null check (status in ('open', 'closed')));
create table order_lines (
    order_id integer not null references orders (id), position integer not null, item text not null,
    description text not null, quantity text not null, unit text not null, unit_price text not null,
    primary key (order_id, position)) without rowid;
"""


class OrderStatus(StrEnum):
    """Whether an order may still be billed."""

    OPEN = "open"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True)
class OrderLine:
    """One position of an order; `item` is the supplier's item id, `unit_price` is for one unit."""

    item: str
    description: str
    quantity: Decimal
    unit: str
    unit_price: Decimal


@dataclass(frozen=True, slots=True)
class Order:
    """What was ordered from whom; `supplier_id` is the supplier's VAT id, as on the invoice."""

    number: str
    supplier_id: str
    supplier: str
    currency: str
    status: OrderStatus
    lines: tuple[OrderLine, ...]


class OrdersUnreadable(Exception):
    """The file is not a database of purchase orders."""

    code: ClassVar[str] = "orders-unreadable"
    hint: ClassVar[str] = "Name the orders database; `python -m invoices.generate --out DIR` makes one."

    def __init__(self, *, path: Path, found: str) -> None:
        self.path, self.found = path, found
        super().__init__(f"{path}: expected a SQLite database with purchase orders, found {found}.")


def load_orders(path: Path) -> dict[str, Order]:
    """Read all orders by number, through a read-only connection; the file is never created or changed.

    Raises:
        OrdersUnreadable: no such file, no such tables, or a value that is no amount or status.
    """
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            lines = _load_lines(connection)
            rows = connection.execute(
                "select id, number, supplier_id, supplier, currency, status from orders order by id"
            ).fetchall()
            return {
                row[1]: Order(row[1], row[2], row[3], row[4], OrderStatus(row[5]), tuple(lines.get(row[0], ())))
                for row in rows
            }
    except (sqlite3.Error, ValueError, InvalidOperation, TypeError) as error:
        raise OrdersUnreadable(path=path, found=str(error) or type(error).__name__) from error


def write_orders(path: Path, orders: Iterable[Order]) -> None:
    """Write a new orders database.

    Crash: a database without orders, or with all of them; the next call refuses to overwrite either.

    Raises:
        FileExistsError: there is a file already.
    """
    path.open("xb").close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        with connection:
            for id_, order in enumerate(orders, start=1):
                _write_order(connection, id_, order)


def _load_lines(connection: sqlite3.Connection) -> dict[int, list[OrderLine]]:
    lines: dict[int, list[OrderLine]] = {}
    for order_id, item, description, quantity, unit, unit_price in connection.execute(
        "select order_id, item, description, quantity, unit, unit_price from order_lines order by order_id, position"
    ):
        line = OrderLine(item, description, Decimal(quantity), unit, Decimal(unit_price))
        lines.setdefault(order_id, []).append(line)
    return lines


def _write_order(connection: sqlite3.Connection, id_: int, order: Order) -> None:
    connection.execute(
        "insert into orders (id, number, supplier_id, supplier, currency, status) values (?, ?, ?, ?, ?, ?)",
        (id_, order.number, order.supplier_id, order.supplier, order.currency, order.status),
    )
    connection.executemany(
        "insert into order_lines (order_id, position, item, description, quantity, unit, unit_price)"
        " values (?, ?, ?, ?, ?, ?, ?)",
        [
            (id_, position, line.item, line.description, str(line.quantity), line.unit, str(line.unit_price))
            for position, line in enumerate(order.lines, start=1)
        ],
    )
