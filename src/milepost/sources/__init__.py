"""What a step reads from outside and how a change of it is noticed: files, folders, queries, URLs, callables.

A source is declared by the user, kept as data (its descriptor) and observed again on resume without the user's code.
Absent and cannot-tell are different answers. Nothing here decides what a change means, and nothing here writes.
Called by the runtime (before a body, after it, on resume) and by the command line (names and diffs for people).
"""

from milepost.sources.call import Call
from milepost.sources.changes import changes
from milepost.sources.files import File, of_path
from milepost.sources.folder import Folder
from milepost.sources.http import Http
from milepost.sources.naming import key_of, name_of
from milepost.sources.observation import Descriptor, Observation, Source
from milepost.sources.observe import observe
from milepost.sources.sql import Sql

__all__ = [
    "Call",
    "Descriptor",
    "File",
    "Folder",
    "Http",
    "Observation",
    "Source",
    "Sql",
    "changes",
    "key_of",
    "name_of",
    "observe",
    "of_path",
]
