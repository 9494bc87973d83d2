"""Releases of a version are numbered by themselves, and listed in the order of publication."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import gramercy
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.ledger.entry import Entry
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import families
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.listing import ListedFacts
from gramercy.schemas.model import canonical_json
from tests.support.factories import (
    MECHANISM,
    home_at,
    run_command,
    run_json,
    run_release,
    write_request,
    write_table,
)
from tests.support.ledgers import TENTH, contract, rewrite
from tests.support.problems import like, raises

YEARLY = {"epsilon": 50.0, "delta": 1e-5, "per": "year"}
ORDER = ["air/2014-r1", "air/2015-r1", "air/2014-r2"]


def publish(folder: Path, version: str, epsilon: float = 1.0) -> str:
    request = {"version": version, "mechanism": {**MECHANISM, "epsilon": epsilon}}
    facts = {"id": "air", "source": "table-{year}.csv", "budget": YEARLY}
    return "air/" + run_release(write_request(folder, request=request, **facts))


@pytest.fixture(scope="module")
def years(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with 2014, 2015, and 2014 again; without a listing."""
    folder = tmp_path_factory.mktemp("years")
    for year in (2014, 2015):
        write_table(folder / f"table-{year}.csv", seed=year)
    with home_at(folder / "home") as home:
        made = [publish(folder, "2014"), publish(folder, "2015"), publish(folder, "2014", 2.0)]
        assert made == ORDER
        assert publish(folder, "2014") == ORDER[0]  # answered by the release that was published
    return home


@pytest.fixture
def in_use(years: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAMERCY_HOME", str(years))
    return years


@pytest.mark.slow
def test_releases_are_listed_as_they_were_published(
    in_use: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before there is a signed listing, and from it."""
    for listed in (False, True):
        if listed:
            write_site(Context.default())
            assert list(gramercy.open(in_use / "archive")) == ORDER
        catalogue = gramercy.open(in_use / "archive")
        assert catalogue.latest("air").id == ORDER[-1]
        assert list(catalogue.history("air").index) == ORDER
        assert [each["release"] for each in run_json("list", capsys=capsys)] == ORDER
        assert [each["release"] for each in run_json("list", "air", capsys=capsys)] == ORDER
        assert catalogue.periods("air")["2014"].id == "air/2014-r2"
    page = (in_use / "archive/air/index.html").read_text()
    places = [page.index(f"{name.removeprefix('air/')}/index.html") for name in ORDER]
    assert places == sorted(places, reverse=True)  # the newest first


def test_the_release_published_first_is_the_earlier_one(
    in_use: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = run_json("compare", "air/2014-r2", "air/2015-r1", capsys=capsys)
    assert (facts["earlier"], facts["later"]) == ("air/2015-r1", "air/2014-r2")


def test_spent_failure_has_a_number(home: Path) -> None:
    ledger = Ledger.of(Home.default())
    spent = ledger.charge(contract(), "2014", "a", TENTH, "").release
    ledger.mark("toy", spent, ChargeState.SPENT, reason="interrupted")
    other = ledger.charge(contract(), "2015", "b", TENTH, "").release
    again = ledger.charge(contract(), "2014", "a", TENTH, "", instead_of=spent).release
    assert [spent, other, again] == ["2014-r1", "2015-r1", "2014-r2"]


def test_ids_differ_where_case_and_punctuation_do_not_count(home: Path) -> None:
    """On some disks, and in the links of a registry of deployments."""
    versions = ("V.1", "v.1", "v-1", "v1", "v-1-r1", "v.1-r1")
    ledger = Ledger.of(Home.default())
    charges = [ledger.charge(contract(), each, each, TENTH, "").release for each in versions]
    assert charges == ["V.1-r1", "v.1-r2", "v-1-r3", "v1-r1", "v-1-r1-r1", "v.1-r1-r2"]
    assert ledger.find_inconsistencies() == []


def test_version_that_leaves_no_room_for_a_number_is_not_charged(home: Path) -> None:
    ledger, most = Ledger.of(Home.default()), 63  # characters of a label
    versions = ["v" * (most - 2), "v" * (most - 3)]
    with raises(families.PERIOD, version=versions[0], most=most - 3):
        ledger.charge(contract(), versions[0], "a", TENTH, "")
    for k in range(9):
        assert len(ledger.charge(contract(), versions[1], f"b{k}", TENTH, "").release) == most
    with raises(families.PERIOD, version=versions[1], most=most - 4):
        ledger.charge(contract(), versions[1], "c", TENTH, "")
    assert len(ledger.charges("toy")) == 9


@pytest.mark.slow
def test_requests_in_parallel_have_different_numbers(database: Path | str) -> None:
    Ledger(database)
    jobs = [(version, f"{version} {k}") for k in range(8) for version in ("2014", "2015")]

    def charged(job: tuple[str, str]) -> str:
        return Ledger(database).charge(contract(), *job, TENTH, "").release

    with ThreadPoolExecutor(len(jobs)) as threads:
        found = list(threads.map(charged, jobs))
    assert sorted(found) == sorted(f"{y}-r{k}" for y in (2014, 2015) for k in range(1, 9))
    assert Ledger(database).find_inconsistencies() == []


def renamed(entry: Entry) -> Entry:
    """The second release of 2014 as the third."""
    return replace(entry, release="2014-r3") if entry.release == "2014-r2" else entry


def numbered_by_the_data_set(entry: Entry) -> Entry:
    """As Gramercy numbered at first."""
    numbers = {"2015-r1": "2015-r2", "2014-r2": "2014-r3"}
    return replace(entry, release=numbers.get(str(entry.release), entry.release))


def test_releases_numbered_by_the_data_set_are_continued(home: Path) -> None:
    ledger = Ledger.of(Home.default())
    for version, request in (("2014", "a"), ("2015", "b"), ("2014", "c")):
        ledger.charge(contract(), version, request, TENTH, "")
    rewrite(ledger, numbered_by_the_data_set)
    assert ledger.releases("toy") == ["2014-r1", "2015-r2", "2014-r3"]
    versions = ("2015", "2016", "2014", "2015")
    made = [ledger.charge(contract(), each, f"d{k}", TENTH, "") for k, each in enumerate(versions)]
    assert [each.release for each in made] == ["2015-r3", "2016-r1", "2014-r4", "2015-r4"]
    assert ledger.find_inconsistencies() == []


def test_listing_without_the_order_of_charges_has_that_of_its_numbers(in_use: Path) -> None:
    """Numbers of releases in archives of earlier versions count the charges of the data set."""
    facts = ListedFacts.of(gramercy.open(in_use / "archive")["air/2014-r2"].manifest)
    old = facts.model_dump(mode="json") | {"release": "v2-r10"}
    del old["charged"]
    assert ListedFacts.model_validate(old).charged == 10 < facts.charged


def numbered_last(entry: Entry) -> Entry:
    return replace(entry, release="2015-r3") if entry.release == "2015-r1" else entry


def of_another_turn(entry: Entry) -> Entry:
    if (entry.kind, entry.release) != ("reserved", "2015-r1"):
        return entry
    return replace(entry, facts=canonical_json(json.loads(entry.facts) | {"turn": 1}))


@pytest.mark.parametrize("change", [renamed, numbered_last, of_another_turn])
def test_audit_finds_a_changed_number(
    change: Callable[[Entry], Entry], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = Ledger.of(Home.default())
    for version, request in (("2014", "a"), ("2015", "b"), ("2014", "c")):
        release = ledger.charge(contract(), version, request, TENTH, "").release
        ledger.mark("toy", release, ChargeState.SPENT, reason="interrupted")
    assert make_audit(Context.default()).discrepancies == []
    changed = [each.seq for each in ledger.entries() if change(each) != each]
    rewrite(ledger, change)
    found: list[Any] = [each.problem for each in make_audit(Context.default()).discrepancies]
    assert like(families.ENTRY, entry=changed[0]) in found
    code, *_ = run_command("audit", capsys=capsys)
    assert code != 0
