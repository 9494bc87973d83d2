"""Noise on counts and marginals: exact sensitivity, scale, law, guarantee and refusals."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gramercy import mechanisms
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.histograms import ConstantsNoise, HistogramNoise
from gramercy.mechanisms.marginals import Marginals
from gramercy.mechanisms.mechanism import PublicParameters
from gramercy.schemas import families
from gramercy.schemas.neighbours import Neighbours
from tests.support.black_box.audit import audit_statistics
from tests.support.black_box.replay import Tape, patched_sampler
from tests.support.conformance import BOTH, calibrated
from tests.support.problems import raises

Array = np.ndarray[Any, Any]

EDGES = [
    np.array([0.0, 1.0, 2.0, 4.0]),
    np.array([-5.0, -1e-9, 1e-9, 5.0]),
    np.array([-(2.0**40), 0.0, 2.0**40]),
]
CELLS = [math.nan, math.inf, -math.inf, -0.0, 0.0, 5e-324, 1.0, 4.0, 1e308, -1e308, 1.9999999]
ROWS = [np.array(row) for row in zip(CELLS, CELLS[3:] + CELLS[:3], reversed(CELLS), strict=True)]
COMMON = np.random.default_rng(1).normal(scale=3.0, size=(20, 3))


def histograms(rows: Array) -> list[Array]:
    """A histogram of every column: one bin for each row, and a last bin for missing cells."""
    counts = []
    for cells, edges in zip(rows.T, EDGES, strict=True):
        inside = np.searchsorted(edges, cells, side="right") - 1
        bins = np.where(np.isfinite(cells), inside.clip(0, len(edges) - 2), len(edges) - 1)
        counts.append(np.bincount(bins, minlength=len(edges)))
    return counts


@pytest.mark.parametrize("neighbours", BOTH)
def test_neighbouring_counts_differ_within_the_claim(neighbours: Neighbours) -> None:
    """Equal noise is requested for both tables, and the claim is attained."""
    noise = HistogramNoise.with_mu(len(EDGES), neighbours, 0.5)
    pairs = [(a, b) for a in ROWS for b in ROWS if a is not b]
    if neighbours == "add-remove":
        pairs = [(np.vstack([a, b]), b) for a, b in pairs]
    assert len(pairs) >= 30
    worst = 0.0
    for first, second in pairs:
        requests, drawn = [], []
        for rows in (first, second):
            tape = Tape([])
            with patched_sampler(tape):
                noisy = noise.perturb(histograms(np.vstack([COMMON, rows])))
            requests.append(tape.requests)
            drawn.append(np.concatenate(noisy))
        assert requests[0] == requests[1]
        assert requests[0] == [("rounded_gaussian", (noise.scale,), drawn[0].size)]
        distance = float(np.linalg.norm(drawn[0] - drawn[1])) / noise.scale
        assert distance <= noise.mu
        worst = max(worst, distance / noise.mu)
    assert worst == pytest.approx(1.0, rel=1e-12)


def test_noise_is_independent_of_the_counts() -> None:
    noise, tape = HistogramNoise.with_mu(3, "replace-one", 1e-6), Tape([])
    counts = histograms(COMMON)
    with patched_sampler(tape):
        noisy = noise.perturb(counts)
    with patched_sampler(Tape([])):
        alone = noise.perturb([np.zeros_like(each) for each in counts])
    for exact, published, drawn in zip(counts, noisy, alone, strict=True):
        assert published.dtype == np.int64
        assert (published == exact + drawn).all()
    assert np.unique(np.concatenate(alone)).size == sum(each.size for each in counts)


@given(st.integers(1, 1000), st.sampled_from(BOTH), st.floats(1e-6, 10.0))
def test_scale_is_the_least_with_the_requested_mu(
    columns: int, neighbours: Neighbours, mu: float
) -> None:
    noise = HistogramNoise.with_mu(columns, neighbours, mu)
    squared = {"replace-one": 2 * columns, "add-remove": columns}[neighbours]
    assert noise.squared_sensitivity == squared
    assert noise.mu <= mu
    assert Fraction(noise.mu) ** 2 * Fraction(noise.scale) ** 2 >= squared
    smaller = HistogramNoise(columns, neighbours, math.nextafter(noise.scale, 0))
    assert smaller.mu >= noise.mu
    assert noise.scale == pytest.approx(math.sqrt(squared) / mu, rel=1e-15)


def test_wrong_number_of_histograms_is_refused() -> None:
    noise = HistogramNoise(2, "replace-one", 5.0)
    with raises(families.ARGUMENT, histograms=2):
        noise.perturb([np.zeros(3, dtype=np.int64)])


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("mu", [0.5, 4.0])
def test_audit_proves_most_of_the_claim_and_never_exceeds_it(
    neighbours: Neighbours, mu: float
) -> None:
    """The best test projects onto the bins that change; at mu = 4 the noise is below one count."""
    noise, draws = HistogramNoise.with_mu(1, neighbours, mu), 20_000
    first = np.repeat(np.array([1, 0]), draws)
    second = 1 - first if neighbours == "replace-one" else 0 * first
    statistics = []
    for counts in (second, first):
        (noisy,) = noise.perturb([counts])
        statistics.append((noisy[:draws] - (first[-1] != second[-1]) * noisy[draws:]).astype(float))
    bounds = audit_statistics(*statistics, confidence=1 - 1e-10)
    assert bounds.mu <= noise.mu
    assert bounds.mu > 0.5 * noise.mu


def test_constants_noise_composes_its_draws() -> None:
    noise = ConstantsNoise.with_mu(7, "add-remove", [0.2, 0.1], 0.05)
    assert [each.histograms for each in noise.draws] == [7, 7, 1]
    assert noise.draws == (*noise.stages, noise.lengths)
    squares = sum((Fraction(each.mu) ** 2 for each in noise.draws), Fraction(0))
    assert squares <= Fraction(noise.mu) ** 2
    assert noise.mu == pytest.approx(math.sqrt(0.04 + 0.01 + 0.0025), rel=1e-12)


SENSITIVITY = {"replace-one": 2, "add-remove": 1}


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-5)])
def test_guarantee_is_the_requested_one(
    neighbours: Neighbours, epsilon: float, delta: float
) -> None:
    mechanism: Any = calibrated("marginals", neighbours=neighbours, epsilon=epsilon, delta=delta)
    guarantee = mechanism.guarantee
    assert guarantee.delta(epsilon) <= delta
    assert guarantee.epsilon(delta) <= epsilon
    assert guarantee.mu == pytest.approx(gdp_mu(epsilon, delta), rel=1e-12)
    assert (guarantee.delta0, guarantee.pure) == (0.0, math.inf)
    squared = sum(
        (
            Fraction(each.histograms * SENSITIVITY[neighbours]) / Fraction(each.scale) ** 2
            for each in mechanism.noise.draws
        ),
        Fraction(0),
    )
    assert squared <= Fraction(guarantee.mu) ** 2
    assert squared <= Fraction(gdp_mu(epsilon, delta)) ** 2


def test_budget_is_divided_in_the_stated_proportions() -> None:
    spec = Marginals.spec.model_validate({"name": "marginals", "mu": 0.5, "delta": 1e-6})
    shares = (0.08, 0.04, 0.04, 0.04)  # of a release; here they are all of mu
    for columns, p in ((None, 9), (4, 9)):
        parameters = PublicParameters(
            p, 1000, "replace-one", table_columns=columns, histogram_shares=shares
        )
        draws = Marginals.from_spec(spec, parameters).noise.draws
        assert [each.histograms for each in draws] == [columns or p] * 3 + [1]
        mus = [0.5 * math.sqrt(share / 0.2) for share in shares]
        assert [each.mu for each in draws] == pytest.approx(mus, rel=1e-12)


def test_constants_state_the_noise_of_every_draw() -> None:
    mechanism: Any = calibrated("marginals", p=6)
    constants, draws = mechanism.constants(), mechanism.noise.draws
    assert constants["scale"] == constants["scale_stage_3"]
    stated = [constants[f"scale_stage_{k}"] for k in (1, 2, 3)] + [constants["scale_lengths"]]
    assert stated == [each.scale for each in draws]
    assert constants["sensitivity"] == math.sqrt(12)
    assert constants["sensitivity_lengths"] == math.sqrt(2)


def test_counts_are_on_the_lattice_of_ones_and_there_is_no_matrix_noise() -> None:
    mechanism = calibrated("marginals")
    assert (mechanism.lattice.squared_radius, mechanism.lattice.divisor) == (1, 1.0)
    assert not mechanism.law.has_noise
    assert mechanism.description()["publishes"] == "marginals"


def test_unsupported_requests_are_refused() -> None:
    kind = mechanisms.registry["marginals"]
    with raises(families.UNSUPPORTED, mechanism="marginals"):
        kind.published(p=5, n=1000, neighbours="replace-one", epsilon=1.0, delta=1e-6)
    spec = kind.spec.model_validate({"name": "marginals", "epsilon": 1.0, "delta": 1e-6})
    with raises(families.UNSUPPORTED, mechanism="marginals"):
        kind.from_spec(spec, PublicParameters(5, 1000, "replace-one", privacy_unit="cell"))
    person = PublicParameters(5, 1000, "replace-one", privacy_unit="person")
    row = PublicParameters(5, 1000, "replace-one")
    assert kind.from_spec(spec, person).guarantee == kind.from_spec(spec, row).guarantee


def test_page_states_the_noise_of_thirty_columns() -> None:
    page = (Path(__file__).parents[3] / "docs/mechanisms/marginals.md").read_text("utf-8")
    for neighbours in BOTH:
        mechanism: Any = calibrated("marginals", p=30, neighbours=neighbours)
        assert f"{mechanism.noise.stages[-1].sd:.1f} under `{neighbours}`" in page
