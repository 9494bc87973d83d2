"""Compare a world with the model: its ledger, its archive, its audit, and all of its files."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import gramercy
from gramercy.archive.listing.contents import Contents
from gramercy.archive.listing.signed_listing import load_part, read_root
from gramercy.archive.seal.bundle import check
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.layout import STAGING
from gramercy.archive.store.opening import open_archive
from gramercy.archive.store.staging import LOCK_SUFFIX
from gramercy.common.disk import is_temporary
from gramercy.ledger import Ledger
from gramercy.mechanisms.accounting.composition import compose
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas.budget import Budget
from gramercy.schemas.listing import ListingEntry
from tests.support.whole.model import PUBLIC, DatasetModel, fits
from tests.support.whole.world import World

Models = Mapping[str, DatasetModel]
_OPEN = {"reserved", "drawn", "sealed"}


def compare_ledger(ledger: Ledger, models: Models) -> None:
    """Budgets, states and totals are the model's; every charge fitted the budget of its time."""
    registered = {name: model for name, model in models.items() if model.registered}
    assert ledger.datasets() == sorted(registered)
    for name, model in registered.items():
        charges = ledger.charges(name)
        assert {each.release: each.state for each in charges} == model.states()
        for statement in ledger.statements(name):
            own = [each for each in model.attempts.values() if each.window == statement.window]
            assert statement.budget == model.budget
            assert statement.total == compose(each.guarantee for each in own)
    budgets: dict[str, Budget] = {}
    charged: dict[tuple[str, str], list[Guarantee]] = {}
    for entry in ledger.entries():
        if entry.kind in {"registered", "raised", "lowered"}:
            budgets[str(entry.dataset)] = entry.budget
        elif entry.kind == "reserved":
            window = charged.setdefault((str(entry.dataset), str(entry.window)), [])
            window.append(models[str(entry.dataset)].attempts[str(entry.release)].guarantee)
            assert fits(window, budgets[str(entry.dataset)])


def journal(ledger: Ledger) -> list[Any]:
    """What the ledger says, without what depends on the noise or on the place."""
    return [
        (each.kind, each.dataset, each.release, each.window, each.mu, each.delta0, each.epsilon)
        for each in ledger.entries()
    ]


def compare_archive(world: World, models: Models, digests: dict[tuple[str, str], str]) -> None:
    """The archive has what was published, whole and unchanged since it was first seen."""
    archive = world.context().archive
    visible = set(archive.releases())
    for name, model in models.items():
        states = model.states()
        published = {(name, release) for release, state in states.items() if state in PUBLIC}
        sealed = {(name, release) for release, state in states.items() if state == "sealed"}
        own = {each for each in visible if each[0] == name}
        assert published <= own <= published | sealed
    assert digests.keys() <= visible
    for each in visible:
        digest = check(archive.release(*each))
        assert digests.setdefault(each, digest) == digest
    entries = Contents(archive).entries()
    assert entries.keys() <= visible
    for each, entry in entries.items():
        assert entry.sha256 == digests[each]


def compare_listing(world: World, dataset: str) -> None:
    """The listing names exactly the bundles of a data set that the archive has, as charged."""
    context = world.context()
    archive, charged = context.archive, context.ledger.releases(dataset)
    entries = Contents(archive).entries(dataset)
    present = {*archive.releases(dataset)}
    assert list(entries) == [(dataset, each) for each in charged if (dataset, each) in present]
    assert all(_is_listed(archive, *each) for each in entries.items())


def _is_listed(archive: Archive, name: tuple[str, str], entry: ListingEntry | None) -> bool:
    """Whether an entry of the listing has what is attached to a release."""
    return (
        entry is not None
        and (entry.withdrawn is not None) == archive.contains(archive.withdrawal(*name))
        and sorted(entry.estimates) == archive.estimates(*name)
        and sorted(entry.reports) == archive.reports(*name)
    )


def _written_entries(archive: Archive) -> dict[tuple[str, str], ListingEntry]:
    """The entries of the listing itself; none without one."""
    signed = read_root(archive)
    datasets = {} if signed is None else signed.root.datasets
    return {
        (dataset, each.facts.release): each
        for dataset, listing in datasets.items()
        for digest in listing.parts
        for each in load_part(archive, dataset, digest).releases
    }


def audit(world: World, models: Models) -> None:
    """An audit finds unfinished releases and what the listing lacks, and nothing else.

    A listing lacks what was published without writing it, and what an interrupted command left.
    """
    context = world.context()
    archive = context.archive
    unfinished, published = set[str](), list[tuple[str, str]]()
    for name, model in models.items():
        for release, state in model.states().items():
            withdrawn = archive.contains(archive.withdrawal(name, release))
            if state in _OPEN or (state == "withdrawn" and not withdrawn):
                unfinished.add(f"{name}/{release}")
            if state == "published":
                published.append((name, release))
    entries = _written_entries(archive)
    found = make_audit(context).discrepancies
    subjects, texts = {each.subject for each in found}, [str(each) for each in found]
    assert subjects - {"listing"} == unfinished, texts
    if all(_is_listed(archive, each, entries.get(each)) for each in archive.releases()):
        assert "listing" not in subjects, texts
    if not entries.keys() >= {*published}:
        assert "listing" in subjects, texts


def read_as_analyst(world: World, name: tuple[str, str]) -> None:
    """An analyst without the home lists everything, and opens and verifies one release."""
    catalogue = gramercy.open(world.home.archive, key=sorted(world.home.keys.glob("*.pub")))
    archive = open_archive(world.home.archive)
    assert sorted(catalogue) == sorted("/".join(each) for each in archive.releases())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        release = catalogue["/".join(name)]
    is_withdrawn = archive.contains(archive.withdrawal(*name))
    assert (release.withdrawn is not None) == is_withdrawn
    assert [each.category for each in caught] == [gramercy.WithdrawnRelease] * is_withdrawn
    assert verify_release(archive, *name, None).checks


def leftovers(world: World) -> list[str]:
    """Files of unfinished writes, unfinished bundles, and copies of the tables."""
    home = world.home
    found = [path for path in home.root.rglob("*") if is_temporary(path.name)]
    found += [path for path in home.internal.rglob("*.*") if path.suffix not in {".json", ".html"}]
    for folder in (home.archive / STAGING, home.staging, home.tables):
        found += [path for path in folder.rglob("*") if path.suffix != LOCK_SUFFIX]
    return [path.relative_to(home.root).as_posix() for path in found]


def private_keys(world: World) -> list[str]:
    files = [path for path in world.home.root.rglob("*") if path.is_file()]
    return [path.name for path in files if b"PRIVATE KEY" in path.read_bytes()]


def search_private_values(world: World, ledger: Ledger, texts: list[str]) -> list[str]:
    """The files of the home, entries and answers that contain a cell of a table."""
    values = world.private_values()
    contents = {
        str(path): path.read_bytes() for path in world.home.root.rglob("*") if path.is_file()
    }
    contents |= {f"text {k}": text.encode() for k, text in enumerate(texts)}
    contents["ledger"] = repr(ledger.entries()).encode()
    return [name for name, data in contents.items() if any(value in data for value in values)]
