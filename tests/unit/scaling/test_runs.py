"""Runs of bins that exceed the noise."""

from __future__ import annotations

import numpy as np
import pytest

from gramercy.scaling.runs import centred, seen_bins

RNG = np.random.default_rng(0)


def test_counts_are_shifted_to_the_number_of_rows() -> None:
    assert centred(np.array([5, 5, 2]), 18.0) == pytest.approx([7, 7, 4])


@pytest.mark.parametrize(
    ("evidence", "seen"),
    [
        ([], 0),
        ([1.0, 1.0, 1.0], 0),
        ([5.0], 1),
        ([0.0, 0.0, 5.0, 0.0], 3),
        ([2.0, 2.0, 2.0, 0.0], 3),
        ([9.0, 0.0, 0.0, 0.0, 5.0], 5),
        ([9.0, -1.0, 2.0], 1),
    ],
)
def test_runs_are_seen_from_inside_to_outside(evidence: list[float], seen: int) -> None:
    assert seen_bins(evidence) == seen


def test_a_gap_costs_evidence() -> None:
    assert seen_bins([0.0, 4.0]) == 2
    assert seen_bins([0.0] * 10 + [4.0]) == 0
    assert seen_bins([0.0] * 10 + [4.0], 2.0) == 11


def test_noise_alone_is_hardly_ever_seen() -> None:
    seen = [seen_bins(RNG.normal(size=15)) > 0 for _ in range(2000)]
    assert np.mean(seen) < 0.06  # some 120 runs are tried
