"""Which data sets read the same table: one that has two names has two budgets.

Only what contracts declare is compared. A copy of a table, a link to it by another machine's path,
or a pattern that matches some of the same files is not recognised.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from gramercy.schemas.url import without_secrets


def declared(source: str) -> str:
    """A contract's source, so that two that name the same place are equal.

    A path without its links; a URL without what may be a secret.
    """
    local = source.removeprefix("file://").removeprefix("local://")
    return without_secrets(local) if "://" in local else os.path.realpath(local)


def sharing(
    sources: Mapping[str, set[str]], dataset: str, asked: Iterable[str] = ()
) -> tuple[str, ...]:
    """The other data sets that read a table which this one reads.

    Parameters
    ----------
    sources
        What every data set has read, as `declared` gives it.
    dataset
        Which.
    asked
        What it is about to read.
    """
    mine = sources.get(dataset, set()).union(map(declared, asked))
    return tuple(sorted(name for name in sources if name != dataset and mine & sources[name]))
