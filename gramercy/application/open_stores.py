"""Ledger and archive of the home in use, which have to agree on where the ledger stands."""

from __future__ import annotations

from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.errors import UntrustedLedger


def open_books() -> tuple[Ledger, Archive]:
    """Ledger and archive, held to each other.

    Raises
    ------
    UntrustedLedger
        If the archive has seen more of the ledger than there is.
    """
    home = Home.default()
    ledger, archive = Ledger.of(home), Archive.of(home)
    hold_to_archive(ledger, archive)
    return ledger, archive


def hold_to_archive(ledger: Ledger, archive: Archive) -> None:
    """Hold a ledger to its anchor in the archive; raises as `Ledger.hold_to`."""
    anchor = archive.anchor()
    try:
        ledger.hold_to(anchor)
    except UntrustedLedger:
        if anchor is not None or (later := archive.anchor()) is None:
            raise
        ledger.hold_to(later)  # somebody released for the first time, in this very moment
