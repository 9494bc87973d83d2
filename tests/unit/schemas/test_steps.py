"""Steps of cumulative series: they fill the window, without gaps, and their labels differ."""

from __future__ import annotations

import datetime
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from gramercy.schemas import families
from gramercy.schemas.budget import Budget, budget_window
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.facts import CumulativeFacts
from gramercy.schemas.periods import days_of
from gramercy.schemas.steps import Cumulative, StepDays
from tests.support.problems import raises

DAY = datetime.timedelta(days=1)
WINDOWS = [
    ("year", [str(year) for year in range(2015, 2045)], ["quarter", "month", "week", "day"]),
    ("quarter", ["2026-Q1", "2026-Q4", "2024-Q1"], ["month", "week", "day"]),
    ("month", ["2026-02", "2024-02", "2026-12", "2027-01"], ["week", "day"]),
]
CASES = [(per, w, every) for per, windows, steps in WINDOWS for w in windows for every in steps]


def series(per: str, window: str, every: str) -> StepDays:
    return Cumulative.model_validate(every).series(per, window)  # type: ignore[arg-type]


@pytest.mark.parametrize(("per", "window", "every"), CASES)
def test_steps_fill_their_window(per: str, window: str, every: str) -> None:
    steps = series(per, window, every)
    first, last = days_of(per, window)  # type: ignore[arg-type, misc]
    assert steps.starts[0] == first
    assert steps.starts[-1] == last + DAY
    assert list(steps.starts) == sorted(set(steps.starts))
    assert len(set(steps.labels)) == steps.count
    assert list(steps.labels) == sorted(steps.labels)
    budget = Budget(epsilon=1, delta=1e-6, per=per)  # type: ignore[arg-type]
    assert {budget_window(budget, each) for each in steps.labels} == {window}
    day = first - DAY
    while day <= last + DAY:
        number = steps.step_of(day)
        assert (number is None) == (day < first or day > last)
        if number is not None:
            assert steps.starts[number - 1] <= day < steps.starts[number]
        day += DAY


@pytest.mark.parametrize(
    ("window", "count", "first", "last"),
    [
        ("2026", 53, "2026-W01", "2026-W53"),
        ("2027", 53, "2027-W00", "2027-W52"),
        ("2025", 53, "2025-W01", "2025-W53"),
        ("2012", 54, "2012-W00", "2012-W53"),
        ("2022", 53, "2022-W00", "2022-W52"),
    ],
)
def test_weeks_of_a_year(window: str, count: int, first: str, last: str) -> None:
    steps = series("year", window, "week")
    assert (steps.count, steps.labels[0], steps.labels[-1]) == (count, first, last)


def test_series_of_a_lifetime() -> None:
    wanted = {"every": "week", "from": "2026-01-07", "steps": 3}
    steps = Cumulative.model_validate(wanted).series("lifetime", "")
    assert [str(day) for day in steps.starts] == [
        "2026-01-07",
        "2026-01-12",
        "2026-01-19",
        "2026-01-26",
    ]
    assert steps.labels == ("2026-W02", "2026-W03", "2026-W04")


def test_days_begin_in_their_zone() -> None:
    steps = series("month", "2026-03", "day")
    instants = steps.instants("Europe/Berlin")
    lengths = {(b - a).total_seconds() / 3600 for a, b in pairwise(instants)}
    assert lengths == {23.0, 24.0}  # clocks are put forward on 29 March
    assert instants[0].isoformat() == "2026-02-28T23:00:00+00:00"


def test_a_step_is_complete_after_its_lag() -> None:
    steps = series("year", "2026", "week")
    monday = datetime.date(2026, 1, 12)
    assert [steps.complete(monday), steps.complete(monday - DAY)] == [2, 1]
    assert steps.complete(monday, lag=7) == 1
    assert steps.complete(datetime.date(2030, 1, 1)) == steps.count
    assert steps.complete(datetime.date(2020, 1, 1)) == 0


@pytest.mark.parametrize(
    ("wanted", "per"),
    [
        ("week", "lifetime"),
        ({"every": "week", "steps": 52}, "lifetime"),
        ({"every": "week", "from": "2026-01-05", "steps": 52}, "year"),
        ("day", "week"),
        ("month", "month"),
        ("week", "day"),
    ],
)
def test_a_series_must_fit_the_budget(wanted: object, per: str) -> None:
    with pytest.raises(GramercyError) as caught:
        Cumulative.model_validate(wanted).check(per)  # type: ignore[arg-type]
    assert caught.value.code == "GRM-163"


@pytest.mark.parametrize(
    "wanted", ["year", {"every": "week", "lag": -1}, {"every": "week", "from": 7, "steps": 0}, 7]
)
def test_impossible_series(wanted: object) -> None:
    with pytest.raises(ValidationError):
        Cumulative.model_validate(wanted)


@pytest.mark.parametrize("every", ["quarter", "month", "week", "day"])
@pytest.mark.parametrize(
    ("start", "steps"), [("0001-01-01", 1), ("9999-12-31", 1), ("9999-01-01", 1000)]
)
def test_days_without_calendar_are_refused(every: str, start: str, steps: int) -> None:
    wanted = {"every": every, "from": start, "steps": steps}
    with raises(families.PERIOD):
        Cumulative.model_validate(wanted).series("lifetime", "")


@pytest.mark.parametrize("window", ["0001", "9999"])
def test_windows_without_calendar_are_refused(window: str) -> None:
    for every in ("quarter", "month", "week", "day"):
        with raises(families.PERIOD):
            series("year", window, every)


FACTS: dict[str, Any] = {
    "every": "month",
    "starts": ["2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01"],
    "step": 2,
    "weights": [2000, 4096],
    "draws": [1, 1],
    "earlier": [{"release": "2026-01-r1", "sha256": "0" * 64}],
    "rows": [3, 4],
}


@pytest.mark.parametrize(
    "facts",
    [
        {"step": 4},
        {"starts": FACTS["starts"][::-1]},
        {"starts": ["2026-01-01", "2026-02-01", "2026-02-01", "2026-04-01"]},
        {"starts": ["0001-01-01", *FACTS["starts"][1:]]},
        {"starts": [*FACTS["starts"][:-1], "9999-12-31"]},
        {"lag": 10**9},
        {"weights": [4096]},
        {"earlier": FACTS["earlier"] * 2},
        {"draws": [1] * 4},
        {"rows": [1] * 4},
    ],
)
def test_facts_that_no_step_has(facts: dict[str, object]) -> None:
    """They are read from bundles, which anybody can write."""
    assert CumulativeFacts.model_validate(FACTS).complete_on == datetime.date(2026, 3, 1)
    with pytest.raises(ValidationError):
        CumulativeFacts.model_validate(FACTS | facts)


def test_facts_of_a_long_series_are_printed_on_a_line() -> None:
    days = series("year", "2026", "day")
    facts = CumulativeFacts(every="day", starts=days.starts, step=32, weights=(4096,) * 32)
    assert str(facts) == repr(facts)
    assert len(str(facts)) < 120
    assert all(word in str(facts) for word in ("32 of 365", "2026-02-01", "2026-12-31"))
