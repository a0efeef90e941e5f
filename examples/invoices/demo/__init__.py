"""`milepost demo`: the same month twice, once undisturbed and once killed five times, and the books of both compared.

`python -m invoices.demo` is the door. `stage` runs a month in child processes, `places` says where they die, `journal`
and `books` read what is left, `telling` prints it. Nothing here takes part in a run.
"""
