"""Home, ledger and archive of a command or a flow: each is opened once, and passed on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gramercy.archive.opening import archive_of
from gramercy.archive.protocol import Archive
from gramercy.common.home import Home
from gramercy.schemas.errors import UntrustedLedger

if TYPE_CHECKING:
    from gramercy.ledger import Ledger


@dataclass(frozen=True)
class Context:
    """The home, ledger and archive that a command or a flow uses.

    Parameters
    ----------
    home
        The steward's home, which determines ledger and archive.
    """

    home: Home

    @classmethod
    def default(cls) -> Context:
        """The context of this user's home."""
        return cls(Home.default())

    @cached_property
    def archive(self) -> Archive:
        """The archive of the home.

        Raises
        ------
        RequestError
            If ``GRAMERCY_ARCHIVE_URL`` is not the URL of an archive, or a trusted key is malformed.
        """
        return archive_of(self.home)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of the home; created if it does not exist.

        Raises
        ------
        LedgerError
            If it cannot be opened.
        """
        from gramercy.ledger import Ledger  # SQLAlchemy: not installed for analysts

        return Ledger.of(self.home)

    @property
    def existing_ledger(self) -> Ledger | None:
        """The ledger of the home, or None if it does not exist; never creates one."""
        return self.ledger if self.home.ledger_url or self.home.ledger.exists() else None

    def open_stores(self) -> tuple[Ledger, Archive]:
        """Ledger and archive, after checking the ledger's anchor in the archive.

        Raises
        ------
        UntrustedLedger
            If the ledger is behind its anchor.
        """
        verify_ledger_anchor(self.ledger, self.archive)
        return self.ledger, self.archive


def verify_ledger_anchor(ledger: Ledger, archive: Archive) -> None:
    """Compare a ledger with its anchor in the archive; raises as `Ledger.verify_anchor`."""
    anchor = archive.anchor()
    try:
        ledger.verify_anchor(anchor)
    except UntrustedLedger:
        if anchor is not None or (later := archive.anchor()) is None:
            raise
        ledger.verify_anchor(later)  # another run has just published the first release
