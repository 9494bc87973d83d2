"""Home, ledger and archive of a command or a flow: each is opened once, and passed on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gramercy.archive.store.archive import Archive
from gramercy.archive.store.opening import Witness, archive_of
from gramercy.common.home import Home
from gramercy.schemas.errors import UntrustedLedger
from gramercy.schemas.ledger_history import Anchor

if TYPE_CHECKING:
    from gramercy.archive.bundles.encoded_file import Encoded
    from gramercy.ledger import Ledger


@dataclass(frozen=True)
class Context:
    """The home, ledger and archive that a command or a flow uses."""

    home: Home  # the steward's home, which determines ledger and archive

    @classmethod
    def default(cls) -> Context:
        """The context of this user's home."""
        return cls(Home.default())

    @cached_property
    def archive(self) -> Archive:
        """The archive of the home."""
        return archive_of(self.home)

    @cached_property
    def ledger(self) -> Ledger:
        """The ledger of the home; created if it does not exist."""
        from gramercy.ledger import Ledger  # SQLAlchemy: not installed for analysts

        return Ledger.of(self.home)

    @cached_property
    def read_steps(self) -> dict[str, tuple[Encoded, ...]]:
        """What earlier steps of a series published, by the digest of their release: public."""
        return {}

    @property
    def existing_ledger(self) -> Ledger | None:
        """The ledger of the home, or None if it does not exist; never creates one."""
        return self.ledger if self.home.ledger_url or self.home.ledger.exists() else None

    @cached_property
    def witness(self) -> Witness | None:
        """The place outside of home and archive that keeps anchors, if one is set."""
        return Witness.of(self.home)

    def open_stores(self) -> tuple[Ledger, Archive]:
        """Ledger and archive, after checking the ledger's anchors."""
        verify_ledger_anchor(self.ledger, self.archive)
        if self.witness is not None and (anchor := self.witness.newest()) is not None:
            self.ledger.verify_anchor(anchor, self.witness.location)
        return self.ledger, self.archive

    def record_head(self, *, outside: bool = False) -> Anchor:
        """Write the ledger's head to the archive, and `outside` to the witness as well."""
        head = self.ledger.head()
        self.archive.write_anchor(head)
        if outside and self.witness is not None:
            self.witness.write(head)
        return head


def verify_ledger_anchor(ledger: Ledger, archive: Archive) -> None:
    """Compare a ledger with its anchor in the archive; raises as `Ledger.verify_anchor`."""
    anchor = archive.anchor()
    try:
        ledger.verify_anchor(anchor)
    except UntrustedLedger:
        if anchor is not None or (later := archive.anchor()) is None:
            raise
        ledger.verify_anchor(later)  # another run has just published the first release
