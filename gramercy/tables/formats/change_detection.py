"""Detect changes of a table between its first and its last read.

The privacy proofs are about one table. A row that moves between two reads could count twice
without changing the number of rows, so the store's facts about the files are compared before any
noise is drawn.
"""

from __future__ import annotations

import contextlib
import hashlib
import json

from gramercy.schemas import families, wordings
from gramercy.schemas.errors import TableError
from gramercy.schemas.source import AnySource
from gramercy.tables.formats.source import Source, open_source

# Facts that change with a file's content, by the names that stores give them.
_CHANGE_MARKERS = {
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


def store_digest(source: Source) -> str:
    """A digest of everything that the store reports about the files. Private.

    Raises
    ------
    TableError
        If a file cannot be accessed, or the store reports only its size.
    """
    files = []
    for file in source.files:
        facts = file.info()
        if not any(_normalised(name) in _CHANGE_MARKERS and x for name, x in facts.items()):
            raise families.SOURCE(
                "{file}: the store gives neither a modification date nor a checksum, so a change "
                "during the release could not be detected.",
                "Copy the table to a local disk, or to a store that gives one.",
                file=file.display_name,
            )
        files.append([file.path, sorted((name, str(value)) for name, value in facts.items())])
    return hashlib.sha256(json.dumps(files).encode()).hexdigest()


def _normalised(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


def verify_unchanged(digest: str, source: AnySource) -> None:
    """Compare the table with its state when it was opened, without the file system's cache.

    Parameters
    ----------
    digest
        The result of `store_digest` when the table was opened.
    source
        The contract's source.

    Raises
    ------
    TableError
        If a file was changed, added or removed.
    """
    current = None
    with contextlib.suppress(TableError):  # a file that was removed is a change
        open_source(source).fs.invalidate_cache()
        current = store_digest(open_source(source))
    if current != digest:
        raise wordings.table_changed()
