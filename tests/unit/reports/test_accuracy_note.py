"""The verdict on the correlations of a release: its colour, and that green is never wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.common.notation import significant
from gramercy.estimators.accuracy.clipped_accuracy import ClippedAccuracy, traceless_rows
from gramercy.estimators.accuracy.correlation_accuracy import correlation_accuracy
from gramercy.estimators.uncertainty.entries import correlation
from gramercy.reports.reader_notes import (
    Note,
    bounded_note,
    correlation_level,
    correlation_note,
    limits_notes,
    long_tails_notes,
)
from gramercy.schemas import families
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from tests.support.simulated_release import declared_columns, privately_scaled, released

Array = NDArray[np.float64]
ROWS, P = 20_000, 8


@cache
def gaussian(seed: int = 1) -> Array:
    stream = np.random.default_rng(seed)
    loads = np.linspace(0.2, 0.8, P)
    common = stream.normal(size=(ROWS, 1)) * loads
    return np.asarray(common + stream.normal(size=(ROWS, P)) * np.sqrt(1 - loads**2))


def standardised() -> list[ColumnFacts]:
    """Columns whose declared constants are right."""
    return [c.model_copy(update={"scale": 1.0}) for c in declared_columns([(-60.0, 60.0)] * P)]


def level(evidence: Evidence) -> str:
    accuracy = correlation_accuracy(evidence)
    note = correlation_note(accuracy, evidence)
    assert note.level == correlation_level(accuracy, evidence)
    codes = {""} if note.level == "good" else {families.NOISE.code, families.READING.code}
    assert note.code in codes
    assert significant(accuracy.typical_noise, 2) in [value for _, value in note.numbers]
    return note.level


KNOWN = (1.0,) * (P + 1)


@pytest.mark.slow
def test_green_needs_published_shares_of_missing_cells() -> None:
    table = gaussian()
    assert level(released(table, standardised(), 9.0, 1e-7, present=KNOWN)) == "good"
    assert level(released(table, standardised(), 9.0, 1e-7)) == "warning"
    often_missing = (*KNOWN[2:], 0.6, 0.6)
    assert level(released(table, standardised(), 9.0, 1e-7, present=often_missing)) == "warning"


@pytest.mark.slow
def test_columns_of_levels_have_no_missing_cells() -> None:
    table = (gaussian() > 0.5).astype(float)
    evidence = released(table, standardised(), 9.0, 1e-6)
    levels = tuple(LevelsFacts(name=f"c{j}", levels=("yes",)) for j in range(P))
    object.__setattr__(evidence, "columns", (None, *levels))
    assert level(evidence) == "good"


@pytest.mark.slow
def test_noise_turns_green_into_orange_and_red() -> None:
    wide = [column.model_copy(update={"scale": 3.0}) for column in standardised()]
    colours = [
        level(released(gaussian(), wide, 3.0, sd, present=KNOWN)) for sd in (1e-7, 5e-4, 5e-3)
    ]
    assert colours == ["good", "warning", "danger"]


@pytest.mark.slow
@pytest.mark.parametrize("intercept", [True, False])
def test_unit_rows_are_never_green(intercept: bool) -> None:
    evidence = released(gaussian(), standardised(), None, 1e-6, intercept, present=())
    assert level(evidence) != "good"


@pytest.mark.slow
def test_far_centres_without_an_intercept_are_red() -> None:
    """Uncorrelated columns whose means are off: released correlations are near 1."""
    table = np.random.default_rng(2).normal(size=(ROWS, P)) + 3.0
    evidence = released(table, standardised(), None, 1e-6, intercept=False)
    accuracy = correlation_accuracy(evidence)
    assert accuracy is not None
    note = correlation_note(accuracy, evidence)
    assert (note.level, note.code) == ("danger", families.READING.code)


# Releases that publish what clipping took away.


@cache
def tables() -> dict[str, Array]:
    """Kinds of tables, with bounds up to several times their range."""
    stream, cells = np.random.default_rng(3), gaussian()
    some = cells.copy()
    some[:, ::4] = np.exp(2 * some[:, ::4])
    zeros = np.exp(cells)
    zeros[stream.random(cells.shape) < 0.8] = 0
    together = np.exp(1.5 * cells + stream.normal(size=(ROWS, 1)))
    together[cells + stream.normal(size=(ROWS, 1)) < 0.5] = 0
    missing = cells.copy()
    missing[stream.random(ROWS) < 0.4, 4:] = np.nan
    shocks = cells.copy()
    long = stream.random(ROWS) < 0.01
    shocks[long] = 6 * stream.normal(size=(long.sum(), 1)) * np.resize([1, -1], P)
    outliers = cells.copy()
    outliers[stream.random(ROWS) < 0.01, :2] += 20.0
    return {
        "gaussian": cells,
        "likert": np.clip(np.round(3 + cells), 1, 5),
        "binary": (cells > 0.4).astype(float),
        "counts": stream.poisson(np.exp(cells / 2 + 1)).astype(float),
        "t3": cells / np.sqrt(stream.chisquare(3, size=(ROWS, 1)) / 3),
        "lognormal": np.exp(cells),
        "heavy lognormal": np.exp(2 * cells),
        "some heavy columns": some,
        "zero-inflated": zeros,
        "zero-inflated together": together,
        "jointly missing": missing,
        "shocks": shocks,
        "joint outliers": outliers,
    }


EXPECTED_GREEN = {"gaussian", "likert", "binary", "counts"}
# Rows that are unlike all others; a release says how many of these leave no trace.
UNLIKE = {"shocks": 130, "joint outliers": 200}


@cache
def private(kind: str, epsilon: float, seed: int = 0) -> Evidence:
    table = tables()[kind]
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    bounds = zip(low - (high - low), high + (high - low), strict=True)
    return privately_scaled(table, list(bounds), epsilon, seed)


def verdict(evidence: Evidence) -> tuple[ClippedAccuracy, Note]:
    """The accuracy of a release, and the note on it."""
    accuracy = ClippedAccuracy.of(evidence)
    assert accuracy is not None
    note = bounded_note(accuracy, evidence)
    assert note.level == accuracy.level
    assert note.code == ("" if note.level == "good" else families.NOISE.code)
    assert f"{accuracy.accurate.typical:.2g}" in note.text
    return accuracy, note


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize("kind", list(tables()))
def test_no_green_box_over_correlations_that_are_off(kind: str, epsilon: float) -> None:
    evidence = private(kind, epsilon)
    accuracy, note = verdict(evidence)
    truth = np.ma.corrcoef(np.ma.masked_invalid(tables()[kind]).T).data
    error = np.abs(correlation(evidence).estimate - truth)[accuracy.accurate.pairs]
    hidden = 1.1 * (traceless_rows(evidence) or 0)
    assert note.level != "good" or error.max() < 0.1 or hidden > UNLIKE.get(kind, ROWS)
    assert note.level == "good" or kind not in EXPECTED_GREEN


def test_verdict_has_its_numbers_in_a_table() -> None:
    accuracy, note = verdict(private("gaussian", 4.0))
    assert accuracy.typical < accuracy.largest < 0.05
    values = [value for _, value in note.numbers]
    for number in (accuracy.typical, accuracy.noise, accuracy.clipping, accuracy.largest):
        assert significant(number, 2) in values
    assert accuracy.noise**2 + accuracy.clipping**2 == pytest.approx(accuracy.typical**2)


def with_heavy_column() -> Array:
    """One column with a long tail."""
    table = gaussian().copy()
    table[:, 3] = np.sinh(2.5 * table[:, 3])
    return table


def test_green_except_for_one_column_names_it() -> None:
    table = with_heavy_column()
    reach = np.abs(table).max(axis=0)
    evidence = privately_scaled(table, list(zip(-reach, reach, strict=True)), 4.0, 1)
    accuracy, note = verdict(evidence)
    assert accuracy.largest > 0.12 > accuracy.accurate.largest
    assert (note.level, accuracy.excepted) == ("good", ("c3",))
    assert "c3" in note.head
    assert not accuracy.accurate.pairs[3].any()


def test_columns_set_apart_are_named_and_do_not_count() -> None:
    """A column with 40 cells that are not zero, and a constant one."""
    table = gaussian().copy()
    table[:, 0] = 7.0
    table[:, 1] = np.where(np.arange(ROWS) % 500 == 0, 30.0, 0.0)
    evidence = privately_scaled(table, [(-40.0, 40.0)] * P, 1.0)
    accuracy, note = verdict(evidence)
    assert note.level == "good"
    assert accuracy.excepted == ()
    assert accuracy.apart.tolist() == [True, True] + [False] * (P - 2)
    assert "c0, c1" in [value for _, value in note.numbers]
    kinds = {each.code for each in limits_notes(evidence)}
    assert kinds == {families.NOISE.code}


def test_errors_by_cells_that_may_be_missing_together_are_named() -> None:
    """Unless it is published which are."""
    measured = private("jointly missing", 4.0)
    assert verdict(measured)[1].level == "good"
    accuracy, note = verdict(replace(measured, missing=None))
    assert note.level != "good"
    assert accuracy.together > max(accuracy.noise, accuracy.clipping)
    assert set(accuracy.least_accurate) <= {"c4", "c5", "c6", "c7"}


@pytest.mark.parametrize(("rows", "level"), [(1000, "warning"), (4000, "good")])
def test_fewer_rows_turn_green_into_orange(rows: int, level: str) -> None:
    evidence = privately_scaled(gaussian()[:rows], [(-9.0, 9.0)] * P, 1.0)
    assert verdict(evidence)[1].level == level


@pytest.mark.slow
def test_columns_with_long_tails_are_named() -> None:
    evidence = released(gaussian(), standardised(), 9.0, 1e-7, present=KNOWN)
    accuracy = correlation_accuracy(evidence)
    assert accuracy is not None
    assert long_tails_notes(accuracy, evidence) == []
    cut = replace(accuracy, spread=np.where(np.arange(P) % 4 == 0, 1.3, 1.05))
    (note,) = long_tails_notes(cut, evidence)
    assert note.code == families.TAILS.code
    names = [each.name for each in standardised()]
    assert [name in note.text for name in names] == [j % 4 == 0 for j in range(P)]
