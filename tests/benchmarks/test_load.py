"""Hundreds of releases: lists, pages and budgets; and the benchmark of thousands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import gramercy
from benchmarks.cells import append, read_results
from benchmarks.load import cells, page, synthetic
from gramercy.archive.listing.contents import Contents, ListedRelease
from gramercy.archive.listing.signed_listing import PART, read_root
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.opening import open_archive
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.verification import listing_problem
from gramercy.reports.catalogue_page import RELEASES_ON_PAGE
from gramercy.schemas.errors import GramercyError
from tests.support.archives import unknown_files, update_listing
from tests.support.factories import run_json

MANY, FEW = PART + 3, 4
LAST = f"v{MANY + 1}-r1"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with many releases of one data set and few of another; listed."""
    folder = tmp_path_factory.mktemp("large")
    with pytest.MonkeyPatch.context() as environ:
        environ.setenv("GRAMERCY_HOME", str(folder / "home"))
        plan, release = synthetic.original(folder)
        names = [("many", f"v{k}", k) for k in range(1, MANY + 1)]
        names += [("few", f"v{k}", k) for k in range(1, FEW + 1)]
        synthetic.grow(plan, release, names)
        update_listing(Context.default(), "few", "v1-r1")  # the first listing has everything
        synthetic.grow(plan, release, [("many", f"v{MANY + 1}", MANY + 1)])
        # No release of its data set has pages yet.
        assert write_site(Context.default(), ("many", LAST)) == MANY + 1
    return folder / "home"


@pytest.fixture(autouse=True)
def in_use(large: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(large))


def test_listing_has_parts(large: Path) -> None:
    archive = open_archive(large / "archive")
    signed = read_root(archive)
    assert signed is not None
    listing = signed.root.datasets["many"]
    assert (len(listing.parts), listing.releases) == (2, MANY + 1)
    assert listing.newest.releases[-1].facts.release == LAST
    names = Contents(archive).names()
    assert len(names) == len(set(names)) == MANY + 1 + FEW + 1
    assert names == archive.releases()
    searched = list(Contents(archive).try_list(names).values())
    assert all(isinstance(each, ListedRelease) for each in searched)


def test_neither_lists_nor_releases_read_other_bundles(
    large: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unexpected(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr("gramercy.archive.bundles.bundle_kinds.describe_release", unexpected)
    assert len(run_json("list", capsys=capsys)) == MANY + 1 + FEW + 1
    (timeline,) = run_json("history", "many", capsys=capsys)
    assert len(timeline["events"]) == 1 + MANY + 1
    assert {each["mechanism"] for each in timeline["events"][1:]} == {"gaussian"}
    catalogue = gramercy.open(large / "archive")
    assert len(catalogue.history("many")) == MANY + 1
    monkeypatch.setattr(Archive, "releases", unexpected)
    assert catalogue[f"many/v{MANY}-r1"].id == f"many/v{MANY}-r1"


def test_lists_in_turn_are_those_of_all(large: Path) -> None:
    contents, expected = Contents(open_archive(large / "archive")), [("few", "lost-r9")]
    together = contents.try_list(also=expected)
    in_turn: dict[tuple[str, str], ListedRelease | GramercyError] = {}
    for part in contents.list_in_turn(expected):
        in_turn |= part
    assert [*in_turn] == [*together]
    for name, each in in_turn.items():
        whole = together[name]
        if isinstance(each, ListedRelease):
            assert isinstance(whole, ListedRelease)
            assert each.facts.names == ()
            assert each.facts == whole.facts.model_copy(update={"names": ()})
        else:
            assert (name, str(each)) == (expected[0], str(whole))
    entries = dict(contents.entries_in_turn(["few", "unknown"]))
    assert {name: set(each or ()) for name, each in entries.items()} == {
        "few": {("few", f"v{k}-r1") for k in range(1, FEW + 1)},
        "unknown": set(),
    }


def test_budgets_of_all_data_sets_are_those_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    together = {each["dataset"]: each for each in run_json("budget", capsys=capsys)}
    assert [*together] == ["few", "many", "throughput"]
    for name, facts in together.items():
        (alone,) = run_json("budget", name, capsys=capsys)
        assert facts == alone
    assert len(together["many"]["charges"]) == MANY + 1
    ledger = Context.default().ledger
    assert ledger.statements_by_dataset() == {name: ledger.statements(name) for name in together}
    assert len(ledger.published()) == MANY + 1 + FEW + 1
    counted = {name: sum(each.charged.values()) for name, each in ledger.accounts().items()}
    assert counted == {name: len(facts["charges"]) for name, facts in together.items()}


def test_pages_of_older_releases_stay_when_new_ones_appear(large: Path, tmp_path: Path) -> None:
    folder = large / "archive" / "many"
    index, older = folder / "index.html", folder / "releases-1.html"
    links = re.findall(r'href="v\d+-r1/index.html"', older.read_text())
    assert len(links) == RELEASES_ON_PAGE
    text = index.read_text()
    assert f"{LAST}/index.html" in text
    assert "v1-r1/index.html" not in text
    assert 'href="releases-1.html">v1 to v100</a>' in text
    assert not (folder / "releases-2.html").exists()
    first_page = (large / "archive" / "index.html").read_text()
    assert f"{MANY + 1 + FEW + 1} releases of 3 data sets" in first_page
    assert f"All {MANY + 1} releases" in first_page
    before, others = older.stat().st_mtime_ns, large / "archive" / "few" / "index.html"
    assert not others.exists()  # no page of another data set was written
    assert write_site(Context.default(), ("many", f"v{MANY}-r1")) == 1
    assert older.stat().st_mtime_ns == before
    archive = open_archive(large / "archive")
    assert unknown_files(archive) == []
    assert listing_problem(archive, archive.releases(), Context.default().ledger) is None


def test_benchmark_is_measured_stored_and_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "ROUNDS", 1)
    monkeypatch.setattr(cells, "COMMANDS", ("budget",))
    monkeypatch.setattr(page, "COMMANDS", ("budget",))
    cell = cells.Cell(2, 4)
    result = cells.measure(cell)
    here = {cells.OPEN, cells.PUBLISH, cells.LISTING}
    assert result.measured.keys() == {"budget", cells.HTTP_LIST, cells.HTTP_OPEN, *here}
    append(tmp_path / "results.jsonl", result)
    assert read_results(tmp_path / "results.jsonl", cells.Result) == {cell: result}
    page.write(tmp_path)
    text = (tmp_path / "results.md").read_text()
    assert "| `gramercy budget` |" in text
    assert f"On {result.cores} processors" in text
