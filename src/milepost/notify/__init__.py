"""Brings open questions to people: mail, chat, webhooks, a command. Who is told what, when, and what became of it.

Everything is kept in an outbox beside the store; a question never waits for a notification and is never lost with one.
Called by the command line: after a run has asked, and by `milepost watch`.
"""
