"""What people are shown of a run, as data and as words: rows, summaries, evidence, timelines. Reads; never writes.

No terminal, no page and no rule lives here. Called by the command line, the console, the audit and reports.
"""
