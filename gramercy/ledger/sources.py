"""Which data sets read the same table: a table with two ids has two budgets.

Only what contracts declare is compared. Not recognised are a copy of a table, a path of another
machine that leads to it, and a pattern that matches some of the same files.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.source import AnySource, location
from gramercy.schemas.url import without_secrets


def normalised_source(source: AnySource) -> str:
    """A contract's source in a form that is equal for the same location.

    Links in a path are resolved, and what may be a secret in a URL is removed. Tables of a database
    are compared by their names and by the URL that contracts state.
    """
    if isinstance(source, DatabaseTable):
        return source.identity
    source = location(source)
    local = source.removeprefix("file://").removeprefix("local://")
    return without_secrets(local) if "://" in local else os.path.realpath(local)


def datasets_with_same_source(
    sources: Mapping[str, set[str]], dataset: str, new_sources: Iterable[AnySource] = ()
) -> tuple[str, ...]:
    """Ids of the other data sets that read a table of this one."""
    own = sources.get(dataset, set()).union(map(normalised_source, new_sources))
    return tuple(sorted(name for name in sources if name != dataset and own & sources[name]))
