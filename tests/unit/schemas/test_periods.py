"""Periods of the data: every day is in exactly one of each kind, with one label."""

from __future__ import annotations

import datetime
import re
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy.schemas import families
from gramercy.schemas.budget import Budget, budget_window
from gramercy.schemas.periods import (
    EXAMPLES,
    Per,
    Span,
    days_of,
    is_label,
    label_of,
    last_complete,
    leading_label,
    parts_of,
)
from tests.support.problems import raises

SPANS = st.sampled_from(get_args(Span))
DAYS = st.dates(datetime.date(2, 1, 1), datetime.date(9998, 12, 31))
ONE = datetime.timedelta(days=1)


def test_budgets_know_every_kind_of_period() -> None:
    assert set(get_args(Per)) == {"lifetime", *get_args(Span)}
    assert all(is_label(span, EXAMPLES[span]) for span in get_args(Span))


@pytest.mark.slow
@given(SPANS, DAYS)
def test_periods_partition_the_days(span: Span, day: datetime.date) -> None:
    label = label_of(span, day)
    days = days_of(span, label)
    assert days is not None
    first, last = days
    assert first <= day <= last
    assert label_of(span, first) == label_of(span, last) == label
    assert label_of(span, first - ONE) == last_complete(span, day) != label
    assert label_of(span, last + ONE) != label
    assert is_label(span, label)


@pytest.mark.slow
@given(SPANS, DAYS, DAYS)
def test_labels_sort_by_time_and_differ_in_a_part(
    span: Span, first: datetime.date, second: datetime.date
) -> None:
    labels = [label_of(span, first), label_of(span, second)]
    parts = [parts_of(span, label) for label in labels]
    assert parts[0].keys() == parts[1].keys()
    assert [len(x) for x in parts[0].values()] == [len(x) for x in parts[1].values()]
    assert (labels[0] == labels[1]) == (parts[0] == parts[1])
    if labels[0] < labels[1]:
        assert first < second


@pytest.mark.slow
@given(SPANS, DAYS, st.text("0123456789WQ-._r", max_size=3))
def test_version_is_charged_to_the_period_at_its_start(
    span: Span, day: datetime.date, rest: str
) -> None:
    budget, label = Budget(epsilon=1.0, delta=1e-6, per=span), label_of(span, day)
    if re.match("[0-9]", rest):
        with raises(families.PERIOD, version=label + rest, per=span):
            budget_window(budget, label + rest)
    else:
        assert budget_window(budget, label + rest) == label


@pytest.mark.parametrize(
    ("span", "text"),
    [
        ("year", "26"),
        ("year", "20260"),
        ("quarter", "2026-Q0"),
        ("quarter", "2026-Q5"),
        ("quarter", "2026-10"),
        ("month", "2026-00"),
        ("month", "2026-13"),
        ("month", "2026-1"),
        ("week", "2025-W53"),
        ("week", "2026-W00"),
        ("week", "2026-W54"),
        ("week", "2026-47"),
        ("day", "2026-02-29"),
        ("day", "2026-11-31"),
        ("day", "0000-01-01"),
    ],
)
def test_what_is_not_a_period_has_no_label(span: Span, text: str) -> None:
    assert leading_label(span, text) is None


@pytest.mark.parametrize(
    ("span", "day", "label"),
    [
        ("week", "2027-01-03", "2026-W53"),
        ("week", "2024-12-30", "2025-W01"),
        ("quarter", "2026-06-30", "2026-Q2"),
        ("month", "2026-02-28", "2026-02"),
    ],
)
def test_labels_of_days(span: Span, day: str, label: str) -> None:
    assert label_of(span, datetime.date.fromisoformat(day)) == label


@pytest.mark.parametrize(
    ("span", "today", "label"),
    [
        ("month", "2026-12-01", "2026-11"),
        ("month", "2026-12-02", "2026-11"),
        ("month", "2026-11-30", "2026-10"),
        ("quarter", "2027-01-01", "2026-Q4"),
        ("week", "2027-01-04", "2026-W53"),
        ("day", "2027-01-01", "2026-12-31"),
        ("year", "2027-06-01", "2026"),
    ],
)
def test_last_complete_period(span: Span, today: str, label: str) -> None:
    assert last_complete(span, datetime.date.fromisoformat(today)) == label
