"""What an attacker without the steward's key does to ledger and archive, for an audit to find."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from gramercy.archive.seal.bundle import content
from gramercy.ledger import Ledger
from gramercy.ledger.entry import Entry
from tests.support.ledgers import cheaper, rewrite
from tests.support.whole.world import World

Name = tuple[str, str]


def _cheaper(world: World, name: Name) -> None:
    rewrite(Ledger.of(world.home), cheaper(name[1], dataset=name[0]))


def _forgotten(world: World, name: Name) -> None:
    """The charge is removed, and its bundles as well."""

    def change(entry: Entry) -> Entry | None:
        return None if (entry.dataset, entry.release) == name else entry

    rewrite(Ledger.of(world.home), change)
    shutil.rmtree(world.home.archive / name[0] / name[1])


def _restored(world: World, name: Name) -> None:
    """A backup of the ledger from before the charge."""
    ledger = Ledger.of(world.home)
    own = (e.seq for e in ledger.entries() if (e.dataset, e.release) == name)
    first = next(own)
    rewrite(ledger, lambda entry: entry if entry.seq < first else None)


def _not_withdrawn(world: World, name: Name) -> None:
    """Withdrawal or publication is removed from the ledger."""
    ledger = Ledger.of(world.home)
    last = [
        e.seq
        for e in ledger.entries()
        if (e.dataset, e.release) == name and e.kind in {"published", "withdrawn"}
    ][-1]
    rewrite(ledger, lambda entry: None if entry.seq == last else entry)


def _flipped(world: World, name: Name) -> None:
    """One bit of a file of the release."""
    folder = world.home.archive / name[0] / name[1] / "release"
    path = folder / sorted(content(folder))[0]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.chmod(0o644)
    path.write_bytes(data)


def _deleted(world: World, name: Name) -> None:
    shutil.rmtree(world.home.archive / name[0] / name[1])


def _copied(world: World, name: Name) -> None:
    """The release again, under the name of one that was never charged."""
    folder = world.home.archive / name[0]
    shutil.copytree(folder / name[1], folder / "v9-r99")


DAMAGES: dict[str, Callable[[World, Name], None]] = {
    "cheaper": _cheaper,
    "forgotten": _forgotten,
    "restored": _restored,
    "not withdrawn": _not_withdrawn,
    "flipped": _flipped,
    "deleted": _deleted,
    "copied": _copied,
}
