"""The verdict on the correlations of a release: its colour, and that green is never wrong."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.accuracy.correlation_accuracy import correlation_accuracy
from gramercy.estimators.table_units import table_units
from gramercy.reports.reader_notes import correlation_level, correlation_note, long_tails_notes
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
    note = correlation_note(accuracy, evidence, "")
    assert note.level == correlation_level(accuracy, evidence)
    codes = {""} if note.level == "good" else {families.NOISE.code, families.READING.code}
    assert note.code in codes
    assert f"{accuracy.typical_noise:.2g}" in note.text
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


def test_noise_turns_green_into_orange_and_red() -> None:
    wide = [column.model_copy(update={"scale": 3.0}) for column in standardised()]
    colours = [
        level(released(gaussian(), wide, 3.0, sd, present=KNOWN)) for sd in (1e-7, 5e-4, 5e-3)
    ]
    assert colours == ["good", "warning", "danger"]


@pytest.mark.parametrize("intercept", [True, False])
def test_unit_rows_are_never_green(intercept: bool) -> None:
    evidence = released(gaussian(), standardised(), None, 1e-6, intercept, present=())
    assert level(evidence) != "good"


def test_far_centres_without_an_intercept_are_red() -> None:
    """Uncorrelated columns whose means are off: released correlations are near 1."""
    table = np.random.default_rng(2).normal(size=(ROWS, P)) + 3.0
    evidence = released(table, standardised(), None, 1e-6, intercept=False)
    accuracy = correlation_accuracy(evidence)
    assert accuracy is not None
    note = correlation_note(accuracy, evidence, "")
    assert (note.level, note.code) == ("danger", families.READING.code)


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
    missing[stream.random(ROWS) < 0.4, :4] = np.nan
    return {
        "gaussian": cells,
        "likert": np.clip(np.round(3 + cells), 1, 5),
        "t3": cells / np.sqrt(stream.chisquare(3, size=(ROWS, 1)) / 3),
        "lognormal": np.exp(cells),
        "heavy lognormal": np.exp(2 * cells),
        "some heavy columns": some,
        "zero-inflated": zeros,
        "zero-inflated together": together,
        "jointly missing": missing,
    }


EXPECTED_GREEN = {"gaussian", "likert"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "epsilon"),
    [
        *((kind, 4.0) for kind in tables()),
        # With more noise, fewer tables come near to green.
        *((kind, 1.0) for kind in ("gaussian", "likert", "lognormal", "jointly missing")),
    ],
)
def test_no_green_box_over_correlations_that_are_off(kind: str, epsilon: float) -> None:
    table = tables()[kind]
    low, high = np.nanmin(table, axis=0), np.nanmax(table, axis=0)
    bounds = list(zip(low - (high - low), high + (high - low), strict=True))
    evidence = privately_scaled(table, bounds, epsilon)
    units = table_units(evidence)
    truth = np.ma.corrcoef(np.ma.masked_invalid(table).T).data
    error = np.abs(units.moments(evidence.raw).correlation - truth)[np.triu_indices(P, 1)]
    colour = level(evidence)
    assert colour != "good" or error.max() < 0.1
    assert colour == "good" or kind not in EXPECTED_GREEN


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
