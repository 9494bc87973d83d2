"""The audit compares every step of a series with what the ledger charged for it."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gramercy.archive.bundles.bundle_kinds import read_release_manifest
from gramercy.ledger.entry import Entry
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.step_charges import withdrawal_of_step
from gramercy.pipeline.publish.attachments import withdraw
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problem import Notice
from tests.support.archives import update_listing
from tests.support.cumulative import STEPS, write_step
from tests.support.factories import home_at, run_release
from tests.support.ledgers import rewrite
from tests.support.problems import like, raises

FIRST, WITHDRAWN, SECOND, THIRD = (
    "2026-Q1-01-r1",
    "2026-Q1-02-r1",
    "2026-Q1-02-r2",
    "2026-Q1-03-r1",
)


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with three steps, of which the second was withdrawn and drawn again."""
    folder = tmp_path_factory.mktemp("series")
    with home_at(folder / "home") as home:
        for step in STEPS[:2]:
            run_release(write_step(folder, step))
        withdraw(Context.default(), "toy", WITHDRAWN, "wrong file")
        assert run_release(write_step(folder, STEPS[1], new_charge=WITHDRAWN)) == SECOND
        assert run_release(write_step(folder, STEPS[2])) == THIRD
        update_listing(Context.default(), "toy", THIRD)
    return home


@pytest.fixture
def series(published: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Context]:
    """This home, in use; its ledger is restored afterwards."""
    monkeypatch.setenv("GRAMERCY_HOME", str(published))
    ledger = published / "ledger.sqlite"
    content = ledger.read_bytes()
    yield Context.default()
    ledger.write_bytes(content)


@pytest.mark.slow
def test_honest_series_has_no_discrepancies(series: Context) -> None:
    audit = make_audit(series)
    assert [str(each) for each in audit.discrepancies] == []
    assert [each.bundle for each in audit.releases].count("verified, withdrawn") == 1
    manifest = read_release_manifest(series.archive.release("toy", THIRD))
    assert manifest.cumulative is not None
    assert manifest.cumulative.draws == (1, 2, 1)


Change = Callable[[Entry], Entry | None]


def facts_of(release: str, kind: str = "reserved", **facts: Any) -> Change:
    """The change of facts of an entry; a function changes the present value, None removes it."""

    def change(entry: Entry) -> Entry:
        if (entry.release, entry.kind) != (release, kind):
            return entry
        changed = json.loads(entry.facts)
        for name, fact in facts.items():
            changed[name] = fact(changed[name]) if callable(fact) else fact
        kept = {name: value for name, value in changed.items() if value is not None}
        return replace(entry, facts=canonical_json(kept))

    return change


def a_day_later(registered: dict[str, Any]) -> dict[str, Any]:
    boundaries = map(datetime.datetime.fromisoformat, registered["boundaries"])
    later = [(each + datetime.timedelta(days=1)).isoformat() for each in boundaries]
    return registered | {"boundaries": later}


def without_withdrawn(entry: Entry) -> Entry | None:
    return None if entry.release == WITHDRAWN else entry


def cheaper(entry: Entry) -> Entry:
    is_first = (entry.release, entry.kind) == (FIRST, "reserved")
    return replace(entry, mu=entry.mu / 2) if is_first and entry.mu else entry


SERIES = dict.fromkeys(("series", "step", "steps", "terms", "included"))


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        (without_withdrawn, "draws"),
        (cheaper, "guarantee"),
        (facts_of(FIRST, registered=a_day_later), "starts"),
        (facts_of(FIRST, registered=lambda facts: facts | {"every": "week"}), "starts"),
        (facts_of(FIRST, registered=lambda facts: facts | {"column": "c0"}), "column"),
        (facts_of(SECOND, "sealed", sha256="0" * 64), "earlier"),
        (facts_of(SECOND, step=3, included=FIRST), "earlier"),
        (facts_of(THIRD, step=2), "step"),
        (facts_of(THIRD, **SERIES), "cumulative"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_step_that_was_charged_otherwise_is_found(
    series: Context, change: Change, wrong: str
) -> None:
    rewrite(series.ledger, change)
    with raises(families.CHARGE) as raised:
        verify_release(series.archive, "toy", THIRD, series.ledger)
    assert wrong in raised.value.facts["wrong"]


def test_withdrawal_of_a_step_names_what_was_decoded_from_it(series: Context) -> None:
    """Not what was decoded from another draw of it."""

    def notice(release: str) -> Notice | None:
        return withdrawal_of_step(series.ledger, "toy", release)

    facts = {"version": "2026-Q1-02"}
    assert notice(WITHDRAWN) == like(
        families.WITHDRAWN, release=WITHDRAWN, decoded=("none",), **facts
    )
    assert notice(SECOND) == like(families.WITHDRAWN, release=SECOND, decoded=(THIRD,), **facts)
    assert notice("2026-r9") is None
