"""Whether a table is still what it was when it was opened.

The proofs are about one table. A row that moves between two reads may count twice, with the number
of rows unchanged; so what a store says of the files is compared before anything is drawn.
"""

from __future__ import annotations

import contextlib
import hashlib
import json

from schemas.errors import TableError
from tables.persons import changed
from tables.source import Source, open_source

_MARKS = (
    "size",
    "mtime",
    "created",
    "ino",
    "ETag",
    "LastModified",
    "last_modified",
    "VersionId",
    "generation",
    "Content-MD5",
    "Digest",
)


def state(source: Source) -> str:
    """A digest of all that the store says of the files. Private.

    Raises
    ------
    TableError
        If a file cannot be looked at, naming it.
    """
    found = []
    for file in source.files:
        facts = source.info(file)
        found.append([file, *(str(facts.get(mark)) for mark in _MARKS)])
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def hold_to(known: str, url: str) -> None:
    """Look again, past any cache.

    Parameters
    ----------
    known
        What `state` gave when the table was opened.
    url
        What was opened.

    Raises
    ------
    TableError
        If a file was changed, added or removed since.
    """
    now = None
    with contextlib.suppress(TableError):  # it was there a moment ago
        open_source(url).fs.invalidate_cache()
        now = state(open_source(url))
    if now != known:
        raise changed()
