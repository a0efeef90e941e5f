"""The audit record: one self-contained file of what a run did, which anybody can check without its store.

`exporting` makes its lines, `checking` proves them; its three forms (JSON lines, CSV, HTML) are made of the same lines.
Reads stores and files, writes only the file it is told to. Called by the command line.
"""
