"""Home, ledger and archive of a command or a flow: each is opened once, and passed on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from gramercy.archive.seal.anchors import (
    all_anchors,
    read_copies,
    recent_copies,
    remove_anchors,
    settle_anchor,
    write_copies,
)
from gramercy.archive.seal.signing import trusted_keys
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.opening import Witness, archive_of
from gramercy.common.home import Home
from gramercy.schemas import families
from gramercy.schemas.errors import UntrustedLedger
from gramercy.schemas.ledger_history import Anchor

if TYPE_CHECKING:
    from gramercy.archive.bundles.encoded_file import Encoded
    from gramercy.ledger import Ledger
    from gramercy.ledger.entry import Entry

_MAY_BE_PUBLIC = {"sealed", "published", "withdrawn", "derived"}  # a bundle is sealed before


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
        if self.witness is not None and (anchors := self.witness.anchors()):
            self.ledger.verify_anchors([*anchors.values()], self.witness.location)
        return self.ledger, self.archive

    def record_head(self, *, outside: bool = False) -> Anchor:
        """Write the ledger's head to the archive, and `outside` to the witness as well.

        Then all anchors there are compared with the ledger. So of two copies of it that charge at
        the same time, at least one finds the anchor of the other, before either draws noise.

        Raises
        ------
        ArchiveError, LedgerError
            If another copy of the ledger has written an anchor.
        """
        head = self.ledger.head()
        self._anchor(self.archive, head)
        if outside and self.witness is not None:
            self._anchor(self.witness, head)
        return head

    def _anchor(self, place: Archive | Witness, head: Anchor) -> None:
        """Write copies of the entries until an anchor, so that none can be lost, and then it."""
        copied = recent_copies(place.store, head.ledger)
        last = next((seq for seq, of in copied if self.ledger.hash_of(seq) == of), 0)
        if copies := self.ledger.entries(last, head.seq):
            write_copies(place.store, head, [*map(asdict, copies)], self.ledger.secret())
        place.write_anchor(head)
        anchors = place.anchors()
        self.ledger.verify_anchors([*anchors.values()], place.location)
        if isinstance(place, Archive):  # a witness keeps all
            remove_anchors(place.store, anchors, head.seq)

    def move_ledger(self, reason: str) -> None:
        """Bring the ledger up to date, and record that it, or its archive, was moved.

        Entries that an older copy of the ledger lacks are appended from the copies in the archive
        or at the witness. If two copies of it have charged after the same entry, what was published
        is followed, and the charges of the other are entered again, as spent.

        Raises
        ------
        UntrustedLedger
            If it lacks entries that are not there, it is a copy and nothing shows how old, or two
            copies have published.
        """
        ledger, trusted = self.ledger, trusted_keys(self.home.keys)
        places: list[Archive | Witness] = [self.archive, *filter(None, [self.witness])]
        anchors = {each: all_anchors(each.store, trusted, recent=True) for each in places}
        head = ledger.head()
        for anchor in chain(*anchors.values()):
            if anchor.ledger != head.ledger:
                ledger.verify_anchor(anchor)  # raises
        branches: list[list[Entry]] = []
        foreign = {place: ledger.foreign(found) for place, found in anchors.items()}
        for anchor in sorted(chain(*foreign.values()), key=lambda each: -each.seq):
            if not any(entry.hash == anchor.hash for entry in chain(*branches)):
                branches.append(self._lost_entries(head, anchor))
        following = [each for each in branches if each[0].previous == head.hash]
        followed = max(following, key=_published, default=[])
        known = {each.hash for each in followed}
        others = [
            [each for each in branch if each.hash not in known]
            for branch in branches
            if branch is not followed
        ]
        if any(map(_published, others)):
            raise families.UNTRUSTED(
                "{ledger}: another copy of the ledger has published since entry {last}.",
                "Restore a backup of the home that is older, and run 'gramercy budget --moved' "
                "there. If both have published, count the budget of every data set as spent.",
                ledger=ledger.location,
                last=min(each[0].seq for each in others if _published(each)) - 1,
            )
        ledger.append_copies(followed)
        if lacking := self._lacking_releases():  # of anchors as old as the ledger
            raise families.UNTRUSTED(
                "{ledger}: the archive has releases that the ledger lacks, but no anchor of them: "
                "{releases}.",
                "Put a complete copy of the archive in its place, with its folder .ledger.",
                ledger=ledger.location,
                releases=lacking,
            )
        if not any(anchors.values()) and ledger.original_location() is not None:
            raise families.UNTRUSTED(
                "{ledger}: this is a copy of the ledger, and neither the archive nor a witness "
                "shows what was charged after it was made.",
                "Put the archive or a copy of it in its place, or set GRAMERCY_WITNESS_URL. If "
                "both are lost, count the budget of every data set as spent.",
                ledger=ledger.location,
            )
        ledger.charge_again(chain(*others))
        ledger.move(reason)
        for place, found in foreign.items():
            for anchor in ledger.foreign(found):
                settle_anchor(place.store, anchor, self.home.keys)
        if any(anchors.values()):
            self.record_head(outside=True)

    def _lost_entries(self, head: Anchor, newest: Anchor) -> list[Entry]:
        """The entries until an anchor that this ledger lacks, from their copies."""
        from gramercy.ledger.entry import Entry
        from gramercy.ledger.journal import check_chain

        places: list[Archive | Witness] = [self.archive, *filter(None, [self.witness])]
        lost, wanted, secret = list[Entry](), newest, self.ledger.secret()
        while self.ledger.hash_of(wanted.seq) != wanted.hash:
            found = (read_copies(place.store, wanted, secret) for place in places)
            copies = [Entry(**each) for each in next(filter(None, found), [])]
            if not copies or copies[-1].hash != wanted.hash or copies[0].seq == 1:
                break
            lost = copies + lost
            before = {"seq": copies[0].seq - 1, "hash": copies[0].previous}
            wanted = wanted.model_copy(update=before)
        else:
            check_chain(wanted.seq, wanted.hash, lost)
            return self.ledger.foreign(lost)
        raise families.UNTRUSTED(
            "{ledger}: the ledger ends at entry {last}, entry {anchored} was anchored, and copies "
            "of all entries between could not be read. Releases of the archive that the ledger "
            "lacks: {releases}.",
            "Restore a newer backup of the home. What is missing is still spent.",
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


def _published(branch: list[Entry]) -> int:
    """The number of releases that were, or may be, published by the copy with these entries."""
    return sum(each.kind in _MAY_BE_PUBLIC for each in branch)


def verify_ledger_anchor(ledger: Ledger, archive: Archive) -> None:
    """Compare a ledger with its anchor in the archive; raises as `Ledger.verify_anchor`."""
    anchors = [*archive.anchors().values()]
    try:
        ledger.verify_anchors(anchors)
    except UntrustedLedger:
        if anchors or not (later := [*archive.anchors().values()]):
            raise
        ledger.verify_anchors(later)  # another run has just published the first release
