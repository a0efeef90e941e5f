"""Supplier invoices out of foreign bytes: UBL 2.1, UN/CEFACT CII, and the PDFs that embed them.

`read_invoice` is the door; the readers behind it refuse by name what is hostile, damaged or incomplete and never guess
a value. Knows no task, no order and no network.
"""

from .reading import read_invoice

__all__ = ["read_invoice"]
