"""The catalogue's pages of a cumulative series, and the list of its releases."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.archive.listing.contents import Contents, ListedRelease
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.catalogue import catalogue_pages
from gramercy.pipeline.catalogue.catalogue_pages import step_series, write_site
from gramercy.pipeline.context import Context
from gramercy.reports.history_page import history_page
from gramercy.reports.period_series import step_facts
from gramercy.schemas.ledger_history import ChargeState
from tests.support.factories import home_at, run_json
from tests.unit.pipeline.test_cumulative import CLIP, catch_up, visits, written


@pytest.fixture(scope="module")
def series_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two months of a quarter, of which the third one is missing."""
    folder, stream = tmp_path_factory.mktemp("series"), np.random.default_rng(5)

    def rounded(scale: float, size: int) -> Any:
        return np.rint(scale * stream.standard_normal(size)).astype(np.int64)

    with home_at(folder / "home") as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "rounded_gaussian", rounded)
        catch_up(written(folder, "2026-Q1-02", visits(3000), normalisation=CLIP))
        write_site(Context.default())
    return home


@pytest.fixture
def published(series_home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That home, as the present one."""
    monkeypatch.setenv("GRAMERCY_HOME", str(series_home))
    return series_home


def listed() -> list[ListedRelease]:
    return Contents(Context.default().archive).list_all()


@pytest.mark.slow
@pytest.mark.usefixtures("published")
def test_listing_has_the_step_of_a_release() -> None:
    first, second = listed()
    assert first.facts.step is not None
    assert second.facts.step is not None
    assert (first.facts.step.step, second.facts.step.step, second.facts.step.steps) == (1, 2, 3)
    assert second.facts.step.last_day.isoformat() == "2026-02-28"


def test_list_command_states_the_step(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = [each["step"] for each in run_json("list", capsys=capsys)]
    assert [each["step"] for each in steps] == [1, 2]
    assert {each["first_day"] for each in steps} == {"2026-01-01"}


@pytest.mark.slow
@pytest.mark.usefixtures("published")
def test_numbers_so_far_and_of_each_step_are_drawn() -> None:
    context = Context.default()
    timelines = context.ledger.timelines("toy")
    series = step_series(context.archive, listed(), timelines)
    assert series is not None
    assert series.so_far is not None
    assert series.alone is not None
    assert [*series.releases] == ["2026-Q1-01", "2026-Q1-02"]
    assert list(series.missing) == ["2026-Q1-03"]
    assert list(series.spent) == []
    facts = step_facts(series)
    assert len(facts["charts"]) == 6
    # The first step alone is the sum so far; the second one is not.
    numbers = series.so_far.merge(
        series.alone.series, on=["period", "kind", "column", "other"], suffixes=("", "_alone")
    )
    same = np.isclose(numbers["estimate"], numbers["estimate_alone"])
    assert same[numbers["period"] == "2026-Q1-01"].all()
    assert not same[numbers["period"] == "2026-Q1-02"].any()
    means = numbers[(numbers["kind"] == "mean") & (numbers["period"] == "2026-Q1-02")]
    assert (means["standard_error_alone"] > means["standard_error"]).all()


@pytest.mark.usefixtures("published")
def test_page_names_the_missing_step() -> None:
    page = (Context.default().archive.root / "toy/index.html").read_text(encoding="utf-8")
    assert page.count("2026-Q1-03") >= 2
    assert 'href="2026-Q1-02-r1/index.html"' in page


@pytest.mark.usefixtures("published")
def test_history_shows_one_charge() -> None:
    page = history_page(Context.default().ledger.timelines("toy"))
    assert page.count(">included</td>") == 1
    assert "1 charge" in page.replace("</b><span>", " ")


@pytest.mark.usefixtures("published")
def test_releases_without_steps_have_no_series() -> None:
    context = Context.default()
    assert step_series(context.archive, [], ()) is None


@pytest.mark.usefixtures("published")
def test_spent_step_is_named() -> None:
    """A charge without a release blocks the steps after it."""
    context = Context.default()
    (timeline,) = context.ledger.timelines("toy")
    last = timeline.events[-1]
    assert last.charge is not None
    charge = replace(last.charge, version="2026-Q1-03", state=ChargeState.SPENT)
    spent = replace(timeline, events=(*timeline.events, replace(last, charge=charge)))
    series = step_series(context.archive, listed(), [spent])
    assert series is not None
    assert list(series.spent) == list(series.missing) == ["2026-Q1-03"]


@pytest.mark.usefixtures("published")
def test_earlier_steps_are_left_out_of_a_long_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_pages, "_SHOWN_STEPS", 1)
    series = step_series(Context.default().archive, listed(), ())
    assert series is not None
    assert (series.omitted, [*series.releases]) == (1, ["2026-Q1-02"])
    ((_, _, first, last),) = step_facts(series)["lines"]
    assert (first.isoformat(), last.isoformat()) == ("2026-02-01", "2026-02-28")
