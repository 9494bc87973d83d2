"""A green verdict does not stand over a wrong correlation, on tables of many kinds.

At full size, 240 releases: twenty kinds, three sizes, four epsilons. The tables, the noise and so
all counts are fixed by their seeds.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.table_entries import table_deviations, table_means
from tests.support.factories import FULL
from tests.support.kinds_of_tables import KINDS, round_bounds
from tests.support.private_release import Array, as_by_default, numeric_columns
from tests.support.verdict_truth import WRONG, VerdictTruth

pytestmark = pytest.mark.slow


LEVEL = 0.95
PLAIN = ("normal", "uniform", "off-centre", "two modes", "Likert")
MISLEADING = (
    "rare ones", "1.3 % lognormal", "1.3 % Pareto", "Student 4", "lognormal", "another law",
    "spikes", "atoms", "codes", "scattered 30 %", "block", "missing where high",
)  # fmt: skip
TWENTY = (
    "normal", "off-centre", "Likert", "rare ones", "counts", "50 % lognormal", "10 % lognormal",
    "1.3 % lognormal", "10 % Pareto", "1.3 % Pareto", "Student 4", "Student 2.5", "lognormal",
    "joint outliers", "another law", "spikes", "atoms", "codes", "scattered 30 %", "block",
)  # fmt: skip


@dataclass(frozen=True)
class Released:
    """One release against its table."""

    kind: str
    n: int
    verdict: VerdictTruth
    # whether the intervals of known means and standard deviations contain the table's own values
    means: list[bool]
    deviations: list[bool]


def _released(kind: str, n: int, epsilon: float) -> Released | None:
    """None where the noise is too large for private constants."""
    seed = zlib.crc32(f"{kind} {n} {epsilon:g}".encode())
    cells = KINDS[kind].build(n, np.random.default_rng([48, seed]))
    columns = numeric_columns(list(zip(*map(np.ndarray.tolist, round_bounds(cells)), strict=True)))
    rng = np.random.default_rng(seed)
    scaled = as_by_default(cells, columns, epsilon, rng)
    if scaled is None:
        return None
    release = scaled.release(rng)
    units = table_units(release)
    assert units is not None

    def held(entries: Array, truth: Array) -> list[bool]:
        lower, upper = entries
        slack = 1e-9 * np.abs(truth)
        known = np.isfinite(lower) & np.isfinite(upper)
        inside: list[bool] = ((lower <= truth + slack) & (truth - slack <= upper))[known].tolist()
        return inside

    bounds = []
    for entries in (table_means(release, units), table_deviations(release, units)):
        lower, upper = entries.interval(LEVEL, "table")
        bounds.append(np.array([np.where(entries.estimable, lower, -np.inf), upper]))
    return Released(
        kind,
        n,
        VerdictTruth.of(release, scaled, cells),
        held(bounds[0], np.nanmean(cells, axis=0)),
        held(bounds[1], np.nanstd(cells, axis=0)),
    )


@pytest.fixture(scope="module")
def releases() -> list[Released]:
    kinds = TWENTY if FULL else (*PLAIN, *MISLEADING)
    sizes, epsilons = (
        ((2000, 20_000, 200_000), (0.5, 1.0, 2.0, 4.0)) if FULL else ((20_000,), (2.0,))
    )
    found = [_released(*each) for each in product(kinds, sizes, epsilons)]
    return [each for each in found if each is not None]


def _share(values: Sequence[bool]) -> float:
    return sum(values) / max(len(values), 1)


def test_green_is_not_over_a_correlation_that_is_off(releases: list[Released]) -> None:
    false = [each for each in releases if each.verdict.false]
    assert len(false) <= (5 if FULL else 1)
    assert not [each.kind for each in false if each.verdict.visible > WRONG]
    assert len([each for each in releases if each.verdict.green]) > len(releases) // 5


def test_releases_that_are_fine_are_green(releases: list[Released]) -> None:
    for n, least in ((20_000, 0.6), (200_000, 0.8)):
        fine = [each.verdict.green for each in releases if each.verdict.fine and each.n == n]
        if fine:
            assert _share(fine) >= (least if FULL else 0.5)
    if not FULL:
        assert all(each.verdict.green for each in releases if each.kind in PLAIN)


def test_intervals_contain_the_values_of_the_table(releases: list[Released]) -> None:
    means = [held for each in releases for held in each.means]
    deviations = [held for each in releases for held in each.deviations]
    assert _share(means) >= (0.93 if FULL else 0.9)
    assert _share(deviations) >= (0.93 if FULL else 0.85)
    plain = [held for each in releases if each.kind in PLAIN for held in each.deviations]
    assert _share(plain) >= 0.9
