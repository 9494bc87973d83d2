"""Whether a table is still what it was when it was opened.

The proofs are about one table. A row that moves between two reads may count twice, with the number
of rows unchanged; so what a store says of the files is compared before anything is drawn.
"""

from __future__ import annotations

import contextlib
import hashlib
import json

from gramercy.schemas.errors import TableError
from gramercy.tables.persons import changed
from gramercy.tables.source import Source, open_source

# What changes with a file's content, under the names that stores have for it.
_MARKS = {
    "checksum",
    "contentmd5",
    "created",
    "digest",
    "etag",
    "generation",
    "ino",
    "lastmodified",
    "md5hash",
    "modificationtime",
    "modified",
    "modify",
    "mtime",
    "updated",
    "versionid",
}


def state(source: Source) -> str:
    """A digest of all that the store says of the files. Private.

    Raises
    ------
    TableError
        If a file cannot be looked at, or the store says no more than its size, naming it.
    """
    found = []
    for file in source.files:
        facts = file.info()
        if not any(_plain(name) in _MARKS and value for name, value in facts.items()):
            raise TableError(
                f"{file.shown}: the store states neither a date nor a digest of it, so "
                "that a change during the release could not be found.",
                "Copy the table to a disk, or to a store that states one.",
            )
        found.append([file.path, sorted((name, str(value)) for name, value in facts.items())])
    return hashlib.sha256(json.dumps(found).encode()).hexdigest()


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


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
