"""Shares and quantiles from noisy histograms, and the coverage of their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gramercy.estimators.marginals import (
    QUANTILES,
    Distribution,
    Quantile,
    counted_rows,
    missing_share,
    roundest,
)
from gramercy.estimators.released_table import ReleasedTable
from gramercy.scaling.column_constants import Constants, zoomed_grid
from gramercy.schemas.evidence import Evidence, Histogram
from gramercy.schemas.facts import ColumnFacts, LevelsFacts, RowsFacts
from gramercy.schemas.noise import NoiseLaw
from tests.support.histogram_tables import histogram, public

Array = np.ndarray[Any, Any]
Law = Callable[[np.random.Generator, int], Array]

ROWS = 20_000


def quantiles(
    histogram: Histogram, rows: RowsFacts, at: Sequence[float] = QUANTILES
) -> list[Quantile]:
    return Distribution.of([histogram], rows).quantiles(at)


UNIT = 1000.0  # laws of measurements are in thousands, so that they are not whole numbers


def zero_inflated(rng: np.random.Generator, rows: int) -> Array:
    return np.where(rng.random(rows) < 0.6, 0.0, UNIT * np.exp(rng.normal(size=rows)))


LAWS: dict[str, tuple[Law, float, float]] = {  # with a centre and a scale
    "lognormal": (lambda rng, n: UNIT * np.exp(rng.normal(size=n)), 1500.0, 2000.0),
    "exponential": (lambda rng, n: UNIT * rng.exponential(size=n), 1000.0, 1000.0),
    "t3": (lambda rng, n: UNIT * rng.standard_t(3, n), 0.0, 1700.0),
    "zero-inflated": (zero_inflated, 700.0, 1500.0),
    "whole numbers": (lambda rng, n: np.rint(rng.normal(45, 16, n)), 45.0, 16.0),
    "five answers": (lambda rng, n: rng.choice(5, n, p=[0.1, 0.2, 0.3, 0.25, 0.15]), 3.0, 1.2),
}
SMOOTH = {"lognormal", "exponential", "t3"}


@pytest.mark.slow
@pytest.mark.parametrize(("sd", "bins"), [(20.0, 64), (20.0, 16), (150.0, 16)])
@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_quantiles_cover(law: str, sd: float, bins: int) -> None:
    draw, centre, scale = LAWS[law]
    rng, repetitions = np.random.default_rng(4), 100
    edges = zoomed_grid(Constants(centre, scale, 1.0, bins=bins), -1e6, 1e6).edges
    everyone = np.sort(draw(rng, 200_000).astype(float))
    truth = everyone[(np.array(QUANTILES) * everyone.size).astype(int)]
    covered, width = np.zeros(len(truth)), np.zeros(len(truth))
    for _ in range(repetitions):
        cells = draw(rng, ROWS).astype(float)
        cells[rng.random(ROWS) < 0.1] = np.nan
        found = quantiles(histogram(cells, edges, sd, rng), public(ROWS))
        covered += [each.lower <= q <= each.upper for each, q in zip(found, truth, strict=True)]
        width += [each.upper - each.lower for each in found]
    assert (covered / repetitions >= 0.89).all()
    assert (covered / repetitions).mean() >= 0.94
    if law in SMOOTH and bins == 64:
        assert (covered / repetitions).mean() < 0.995
        # The intervals are narrower than a bin, which is an eighth of the scale.
        assert width[1:4].max() / repetitions < scale / 8


def test_noise_of_empty_bins_moves_no_quantile_far_out() -> None:
    """Without bounds, bins reach to 2^40, and the noise of all of them exceeds a tail's count."""
    rng = np.random.default_rng(8)
    far = 4.0 * 2.0 ** np.arange(1, 39)
    edges = np.concatenate([-far[::-1], np.linspace(-4, 4, 65), far])
    cells, at = rng.normal(size=20_000), (0.05, 0.25, 0.5, 0.75, 0.95)
    codes = np.where(rng.random(cells.size) < 0.2, -9.0, cells)
    for column in (cells, codes):
        truth = np.quantile(column, at)
        found = [quantiles(histogram(column, edges, 160.0, rng), public(20_000), at)] * 20
        values = np.array([[each.value for each in one] for one in found])
        # -9 is in the bin from -16 to -8.
        assert np.abs(values - truth).max() < (0.4 if column is cells else 7.0)


def test_shares_have_their_standard_error() -> None:
    rng, sd, n, p = np.random.default_rng(2), 30.0, 4000, 0.2
    exact = rng.binomial(n, p, 4000)
    counts = exact + rng.normal(0, sd, 4000).round()
    others = n - exact + rng.normal(0, sd, 4000).round()
    rows = n + rng.normal(0, 100, 4000)
    found = [
        missing_share(
            [one_bin(int(other), int(k), sd)],
            RowsFacts(value=each, observed=each, status="noisy", sd=100.0),
            None,
        )
        for k, other, each in zip(counts, others, rows, strict=True)
    ]
    values = np.array([each.value for each in found])
    assert values.mean() == pytest.approx(p, abs=0.002)
    assert found[0].standard_error == pytest.approx(values.std(), rel=0.1)


def one_bin(count: int, missing: int = 0, sd: float = 30.0) -> Histogram:
    lower, upper = np.array([0.0, np.nan]), np.array([1.0, np.nan])
    return Histogram(1, "x", lower, upper, (None, None), np.array([count, missing]), sd)


@pytest.mark.parametrize(("count", "value"), [(-50, 0.0), (5000, 1.0)])
def test_shares_are_shares(count: int, value: float) -> None:
    assert missing_share([one_bin(4000 - count, count)], public(4000), None).value == value


@pytest.mark.slow
def test_known_number_of_rows_reduces_the_noise() -> None:
    """A cumulative count is then known from both of its ends.

    This helps where the share of the cells below a value differs from that of the bins.
    """
    rng, edges = np.random.default_rng(6), np.linspace(0, 1, 65)
    found: dict[float, list[float]] = {0.0: [], 1e6: []}
    for _ in range(40):
        each = histogram(np.linspace(0, 0.2, 5000), edges, 20.0, rng)
        for sd, values in found.items():
            rows = RowsFacts(value=5000, observed=5000, status="noisy", sd=sd)
            (median,) = quantiles(each, rows, [0.5])
            values.append(median.upper - median.lower)
    known, unknown = (np.mean(each) for each in found.values())
    assert known < 0.9 * unknown


def test_cells_without_a_value_have_no_quantiles() -> None:
    """The interval is then the whole range."""
    (median,) = quantiles(one_bin(3, missing=4000), public(4000), [0.5])
    assert (median.lower, median.upper) == (0.0, 1.0)
    (median,) = quantiles(one_bin(-400, missing=-3), public(4000), [0.5])
    assert median == Quantile(median.value, 0.0, 1.0)


def test_equal_cells_fill_their_bin() -> None:
    """They may be anywhere in it."""
    edges, rng = np.array([0.0, 0.3, 0.4, 0.5, 1.0]), np.random.default_rng(1)
    each = histogram(np.full(5000, 0.4), edges, 1.0, rng)
    (median,) = quantiles(each, public(5000), [0.5])
    assert (median.lower, median.upper) == pytest.approx((0.4, 0.5), abs=1e-3)


def test_counted_rows_are_the_mean_of_the_columns() -> None:
    marginals = [one_bin(100, 10), replace(one_bin(95, 5), column="y")]
    rows = counted_rows(marginals)
    assert (rows.value, rows.status) == (105.0, "noisy")
    assert rows.sd == pytest.approx(30.0 * np.sqrt(4) / 2)
    assert counted_rows([one_bin(-90, 5)]).value == 1.0


def test_frame_has_a_line_for_every_bin() -> None:
    levels = replace(
        one_bin(60, 5), lower=np.full(2, np.nan), upper=np.full(2, np.nan), level=("A", None)
    )
    facts = (
        ColumnFacts(name="x", lower=0.0, upper=1.0, centre=0.5, scale=0.5),
        LevelsFacts(name="y", levels=("A",)),
    )
    none = np.zeros((0, 0))
    evidence = Evidence(
        none,
        none,
        NoiseLaw.none(),
        110.0,
        columns=facts,
        histograms=(one_bin(100, 10), replace(levels, column="y")),
    )
    frame = ReleasedTable(evidence).frame(facts)
    assert frame["column"].tolist() == ["x", "x", "y", "y"]
    assert frame["level"].tolist()[2] == "A"
    assert frame["level"].isna().tolist() == [True, True, False, True]
    assert frame["lower"].isna().tolist() == [False, True, True, True]
    assert frame["share"].tolist() == pytest.approx([100 / 110, 10 / 110, 82.5 / 110, 27.5 / 110])
    assert frame["count"].tolist() == [100, 10, 60, 5]
    assert (frame["standard_error"] > 0).all()


@pytest.mark.parametrize("bins", [8, 64])
def test_quantiles_of_zero_and_one_are_zero_or_one(bins: int) -> None:
    """Also with a count of cells that noise puts between them."""
    edges = zoomed_grid(Constants(0.5, 0.5, 1.0, bins=bins), 0.0, 1.0).edges
    rng = np.random.default_rng(11)
    for share_of_ones, ones in ((0.2, 1), (0.6, 3)):
        for _ in range(20):
            cells = (rng.random(ROWS) < share_of_ones).astype(float)
            found = quantiles(histogram(cells, edges, 20.0, rng), public(ROWS))
            assert [each.value for each in found] == [0.0] * (5 - ones) + [1.0] * ones
            assert {each.lower for each in found} | {each.upper for each in found} <= {0.0, 1.0}


def test_cells_at_zero_are_shown_as_zero() -> None:
    rng = np.random.default_rng(12)
    edges = zoomed_grid(Constants(700.0, 1500.0, 1.0, bins=64), 0.0, 1e6).edges
    found = quantiles(histogram(zero_inflated(rng, ROWS), edges, 20.0, rng), public(ROWS))
    assert [each.value for each in found[:3]] == [0.0] * 3
    assert (found[0].lower, found[0].upper, found[1].upper) == (0.0, 0.0, 0.0)
    assert 0 < found[3].value < found[4].value
    assert found[4].value != round(found[4].value)


def test_quantiles_of_shares_are_not_rounded() -> None:
    rng = np.random.default_rng(13)
    edges = zoomed_grid(Constants(0.5, 0.3, 1.0, bins=64), 0.0, 1.0).edges
    found = quantiles(histogram(rng.random(ROWS), edges, 20.0, rng), public(ROWS))
    assert [each.value for each in found] == pytest.approx(QUANTILES, abs=0.02)


@pytest.mark.parametrize("bins", [16, 64])
def test_half_of_the_cells_at_one_value_are_there(bins: int) -> None:
    """Their value is the roundest number of its bin, and the interval is the bin."""
    rng = np.random.default_rng(14)
    edges = zoomed_grid(Constants(0.47, 0.17, 1.0, bins=bins), 0.0, 1.0).edges
    cells = np.where(rng.random(ROWS) < 0.6, 0.5, rng.random(ROWS))
    found = quantiles(histogram(cells, edges, 40.0, rng), public(ROWS))
    assert [each.value for each in found[1:4]] == [0.5] * 3
    assert all(each.lower <= 0.5 <= each.upper for each in found[1:4])
    assert found[0].value == pytest.approx(0.125, abs=0.03)


def test_answers_on_a_scale_are_whole_however_bins_lie() -> None:
    rng = np.random.default_rng(15)
    cells = rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], ROWS, p=[0.1, 0.2, 0.4, 0.2, 0.1])
    stages = [
        histogram(cells, edges, 100.0, rng)
        for edges in (
            np.linspace(1, 5, 65),
            zoomed_grid(Constants(3.1, 1.13, 1.0, bins=8), 1.0, 5.0).edges,
        )
    ]
    found = Distribution.of(stages, public(ROWS)).quantiles()
    assert [each.value for each in found] == [1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.slow
def test_all_stages_make_quantiles_more_exact() -> None:
    errors, rng = np.zeros((2, 40)), np.random.default_rng(16)
    grids = [zoomed_grid(Constants(c, 1.0, 1.0, bins=32), -9.0, 9.0).edges for c in (0.0, 0.1, 0.2)]
    for k in range(40):
        cells = rng.normal(size=ROWS)
        stages = [histogram(cells, edges, 300.0, rng) for edges in grids]
        for j, used in enumerate((stages[-1:], stages)):
            (found,) = Distribution.of(used, public(ROWS)).quantiles([0.3])
            errors[j, k] = found.value - np.quantile(cells, 0.3)
    last, every = np.sqrt((errors**2).mean(axis=1))
    assert every < 0.75 * last


@pytest.mark.parametrize(
    ("low", "high", "value"),
    [
        (0.4845, 0.5001, 0.5),
        (0.2485, 0.2515, 0.25),
        (-3.2, 8.0, 0.0),
        (36.4, 37.3, 37.0),
        (-0.52, -0.49, -0.5),
        (1234.12, 1234.43, 1234.2),
        (0.099, 0.1, 0.099),
        (990.0, 1010.0, 1000.0),
    ],
)
def test_roundest_number_of_a_bin(low: float, high: float, value: float) -> None:
    assert roundest(low, high) == value
    assert roundest(0.9999, 1.0, closed=True) == 1.0
