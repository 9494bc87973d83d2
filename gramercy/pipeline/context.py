"""Home, ledger and archive of a command or a flow: each is opened once, and passed on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gramercy.archive.seal.anchors import copied_until, read_copies, write_copies
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.opening import Witness, archive_of
from gramercy.archive.store.storage import Store
from gramercy.common.home import Home
from gramercy.schemas import families
from gramercy.schemas.errors import UntrustedLedger
from gramercy.schemas.ledger_history import Anchor

if TYPE_CHECKING:
    from gramercy.archive.bundles.encoded_file import Encoded
    from gramercy.ledger import Ledger
    from gramercy.ledger.entry import Entry


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
        self._copy_entries(self.archive.store, head)
        self.archive.write_anchor(head)
        if outside and self.witness is not None:
            self._copy_entries(self.witness.store, head)
            self.witness.write(head)
        return head

    def _copy_entries(self, store: Store, head: Anchor) -> None:
        """Copy the entries until an anchor to where it will be, so that none can be lost."""
        last = copied_until(store, head.ledger, self.ledger.hash_of)
        if copies := self.ledger.entries(last, head.seq):
            write_copies(store, head.ledger, [*map(asdict, copies)], self.home.keys)

    def move_ledger(self, reason: str) -> None:
        """Bring the ledger up to date, and record that it, or its archive, was moved.

        Charges that an older copy of the ledger lacks are appended from the copies of its entries
        in the archive or at the witness.

        Raises
        ------
        UntrustedLedger
            If it lacks entries that are not there, or it is a copy and nothing shows how old.
        """
        ledger, archive, witness = self.ledger, self.archive, self.witness
        anchors = [archive.anchor(), None if witness is None else witness.newest()]
        head = ledger.head()
        newest = max((each for each in anchors if each), key=lambda each: each.seq, default=None)
        if newest is not None and newest.ledger == head.ledger and newest.seq > head.seq:
            ledger.append_copies(self._lost_entries(head, newest))
        if lacking := self._lacking_releases():  # of anchors as old as the ledger
            raise families.UNTRUSTED(
                "{ledger}: the archive has releases that the ledger lacks, but no anchor of them: "
                "{releases}.",
                "Put a complete copy of the archive in its place, with its folder .ledger.",
                ledger=ledger.location,
                releases=lacking,
            )
        if newest is None and ledger.original_location() is not None:
            raise families.UNTRUSTED(
                "{ledger}: this is a copy of the ledger, and neither the archive nor a witness "
                "shows what was charged after it was made.",
                "Put the archive or a copy of it in its place, or set GRAMERCY_WITNESS_URL. If "
                "both are lost, count the budget of every data set as spent.",
                ledger=ledger.location,
            )
        for anchor, place in zip(anchors, (archive, witness), strict=True):
            if anchor is not None and place is not None:
                ledger.verify_anchor(anchor, place.location)
        ledger.move(reason)
        if newest is not None:
            self.record_head(outside=True)

    def _lost_entries(self, head: Anchor, newest: Anchor) -> list[Entry]:
        """The entries after a head of this ledger until an anchor, from their copies."""
        from gramercy.ledger.entry import Entry

        stores = [self.archive.store, *([self.witness.store] if self.witness else [])]
        copies = {
            each["hash"]: each
            for store in stores
            for each in read_copies(store, head.ledger, head.seq, self.home.keys)
        }
        lost: list[Entry] = []
        wanted = newest.hash
        while wanted != head.hash and wanted in copies:
            lost.append(Entry(**copies.pop(wanted)))
            wanted = lost[-1].previous
        if wanted == head.hash:
            return lost[::-1]
        raise families.UNTRUSTED(
            "{ledger}: the ledger ends at entry {last}, entry {anchored} was anchored, and copies "
            "of all entries between could not be read with the key of this home. Releases of the "
            "archive that the ledger lacks: {releases}.",
            "Restore a newer backup of the home: one that was made after the last 'gramercy keys "
            "new'. What is missing is still spent.",
            ledger=self.ledger.location,
            last=head.seq,
            anchored=newest.seq,
            releases=self._lacking_releases(),
        )

    def _lacking_releases(self) -> tuple[str, ...]:
        """Releases of the archive that were not charged in this ledger."""
        charged = {
            (each, name) for each in self.ledger.datasets() for name in self.ledger.releases(each)
        }
        return tuple(sorted("/".join(each) for each in {*self.archive.releases()} - charged))


def verify_ledger_anchor(ledger: Ledger, archive: Archive) -> None:
    """Compare a ledger with its anchor in the archive; raises as `Ledger.verify_anchor`."""
    anchor = archive.anchor()
    try:
        ledger.verify_anchor(anchor)
    except UntrustedLedger:
        if anchor is not None or (later := archive.anchor()) is None:
            raise
        ledger.verify_anchor(later)  # another run has just published the first release
