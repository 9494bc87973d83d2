"""Columns whose long tails reach beyond the bounds of private constants are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from gramercy.estimators.accuracy.clipped_means import clamped_columns
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from tests.support.histogram_tables import histogram

N, SD, SCALE, WINSOR = 20_000, 60.0, 1.0, 8.0


def fine_and_octaves(limit: float = 2.0**30) -> NDArray[np.float64]:
    """Edges of the last stage: equal bins near the centre, octaves beyond, up to a limit."""
    octaves = 4.0 * 2.0 ** np.arange(1, 40)
    octaves = np.append(octaves[octaves < limit], limit)
    return np.concatenate([-octaves[::-1], np.linspace(-4, 4, 65), octaves])


def evidence(cells: NDArray[np.float64], edges: NDArray[np.float64], seed: int) -> Evidence:
    column = ColumnFacts(
        name="x",
        lower=max(-WINSOR, float(edges[0])),
        upper=min(WINSOR, float(edges[-1])),
        centre=0.0,
        scale=SCALE,
    )
    made = histogram(cells, edges, SD, np.random.default_rng(seed))
    facts: Any = SimpleNamespace(columns=(None, column), marginals=(made,))
    return cast(Evidence, facts)


def named(cells: NDArray[np.float64], edges: NDArray[np.float64]) -> float:
    """How often the column is named."""
    return float(np.mean([clamped_columns(evidence(cells, edges, k)) == ("x",) for k in range(60)]))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_long_tail_is_named(sign: float) -> None:
    cells = sign * np.exp(1.5 * np.random.default_rng(1).normal(size=N))
    assert named(cells, fine_and_octaves()) == 1


def test_codes_for_missing_values_are_named() -> None:
    stream = np.random.default_rng(2)
    cells = np.where(stream.random(N) < 0.06, -9.0, stream.normal(size=N))
    assert named(cells, fine_and_octaves()) == 1


def test_noise_alone_is_rarely_named() -> None:
    cells = np.random.default_rng(3).normal(size=N)
    assert named(cells, fine_and_octaves()) <= 0.1


def test_bounds_of_the_contract_clamp_the_histogram_as_well() -> None:
    """The steward chose them, and the quantiles are those of the same clamped cells."""
    cells = np.exp(1.5 * np.random.default_rng(4).normal(size=N))
    assert named(cells, fine_and_octaves(limit=7.0)) == 0
