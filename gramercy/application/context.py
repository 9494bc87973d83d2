"""Home, ledger and archive of one piece of work: each is opened once, and passed on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gramercy.archive.open import archive_of
from gramercy.archive.protocol import Archive
from gramercy.common.home import Home
from gramercy.schemas.errors import UntrustedLedger

if TYPE_CHECKING:
    from gramercy.ledger import Ledger


@dataclass(frozen=True)
class Context:
    """What a command or a flow works with.

    Parameters
    ----------
    home
        Whose ledger and archive these are.
    """

    home: Home

    @classmethod
    def default(cls) -> Context:
        """That of this user's home."""
        return cls(Home.default())

    @cached_property
    def archive(self) -> Archive:
        """The archive of the home.

        Raises
        ------
        RequestError
            If ``GRAMERCY_ARCHIVE_URL`` cannot be one, or a trusted key is none.
        """
        return archive_of(self.home)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of the home; an empty one is made where there is none.

        Raises
        ------
        LedgerError
            If it cannot be opened.
        """
        from gramercy.ledger import Ledger  # SQLAlchemy: whoever only reads releases has none

        return Ledger.of(self.home)

    @property
    def known_ledger(self) -> Ledger | None:
        """The ledger of the home, if it has one; none is made."""
        return self.ledger if self.home.ledger_url or self.home.ledger.exists() else None

    def books(self) -> tuple[Ledger, Archive]:
        """Ledger and archive, which have to agree on where the ledger stands.

        Raises
        ------
        UntrustedLedger
            If the archive has seen more of the ledger than there is.
        """
        hold_to_archive(self.ledger, self.archive)
        return self.ledger, self.archive


def hold_to_archive(ledger: Ledger, archive: Archive) -> None:
    """Hold a ledger to its anchor in the archive; raises as `Ledger.hold_to`."""
    anchor = archive.anchor()
    try:
        ledger.hold_to(anchor)
    except UntrustedLedger:
        if anchor is not None or (later := archive.anchor()) is None:
            raise
        ledger.hold_to(later)  # somebody released for the first time, in this very moment
