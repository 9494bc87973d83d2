"""What the history of flow runs records about a ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gramercy.schemas.anchor import Anchor
from gramercy.schemas.problem import Notice


@dataclass(frozen=True)
class History:
    """Runs and anchors of one ledger.

    Parameters
    ----------
    runs
        Names of the runs that published each release.
    anchors
        Heads of the ledger that runs have recorded.
    elsewhere
        Notices of releases of its data sets that were charged to other ledgers.
    """

    runs: Mapping[str, Sequence[str]]
    anchors: Sequence[Anchor]
    elsewhere: Sequence[Notice] = ()
