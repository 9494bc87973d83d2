"""A default id for a data set, from the path of its table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gramercy.schemas.periods import without_placeholders

_MAX_LENGTH = 63
# Names such as data-2024.csv, part-0000.parquet and export/final.csv say nothing about the data.
_VAGUE = re.compile(
    r"[0-9]+|v[0-9]+|q[1-4]|(data|dataset|table|tables|export|extract|file|files|part|chunk|sheet"
    r"|input|output|out|raw|clean|cleaned|final|new|copy|dump|download|downloads|documents|desktop"
    r"|test|tmp|temp|untitled|main|all|csv|parquet)[0-9]*"
)


def default_id(table: str) -> str:
    """An id for the table at a path or URL: its name, or that of the nearest folder that has one.

    Examples
    --------
    >>> default_id("/srv/clinic/blood-2026.csv"), default_id("/srv/clinic/data.csv")
    ('blood-2026', 'clinic')
    """
    for part in _parts(table):
        words = re.findall(r"[a-z0-9]+", without_placeholders(part).lower())
        if "=" not in part and not all(map(_VAGUE.fullmatch, words)):
            return "-".join(words)[:_MAX_LENGTH].strip("-")
    return "table"


def _parts(table: str) -> Iterator[str]:
    """Names of the file and the folders around it, the nearest first, without suffixes."""
    if "://" in table:
        parts = PurePosixPath(table.partition("://")[2].partition("?")[0]).parts
        names = parts[1:]  # without the host or the bucket
    else:
        path = Path(table).absolute()
        # The home folder and those above it are named after a user or a machine.
        outside = len(Path.home().parts) if path.is_relative_to(Path.home()) else 1
        names = path.parts[outside:]
    for name in reversed(names):
        yield name.partition(".")[0] if name == names[-1] else name
