"""The command line: one file per command; `main` finds them, `output` is the only room that writes.

Holds no rule and no SQL: everything goes through `milepost.runtime` and the store contract.
"""
