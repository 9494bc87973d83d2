"""What flow runs remember of a ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gramercy.schemas.anchor import Anchor


@dataclass(frozen=True)
class History:
    """Runs and anchors of one ledger.

    Parameters
    ----------
    runs
        By release: the names of the runs that published it.
    anchors
        Where the ledger stood, as runs have told.
    elsewhere
        Of its data sets: what was charged to other ledgers, in words.
    """

    runs: Mapping[str, Sequence[str]]
    anchors: Sequence[Anchor]
    elsewhere: Sequence[str] = ()
