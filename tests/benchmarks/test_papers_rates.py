"""The theorems' rates: exponents are recovered, and compared the right way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.papers import rates, theorems
from benchmarks.papers.experiment import Figures, Measured
from benchmarks.papers.papers import PAPERS
from benchmarks.papers.rates import Slope, Theorem, verdict

VALUES = (10, 100, 1000)


def _measured(theorem: Theorem, **exponents: float) -> tuple[rates.Theorems, Measured]:
    known = {"some": theorem}
    rng = np.random.default_rng(1)

    def error(of: dict[str, float]) -> Figures:
        size = math.prod(of[axis] ** exponent for axis, exponent in exponents.items())
        return {"sound": size * math.exp(0.01 * rng.normal()), "sound empty": of["n"] < 100}

    settings = rates.experiment(known).settings
    return known, Measured({each: [error(dict(each)) for _ in range(5)] for each in settings})  # type: ignore[arg-type]


def test_exponents_are_recovered_and_compared() -> None:
    theorem = Theorem(
        "Theorem: error.",
        lambda *_: {},
        {"n": VALUES, "epsilon": (0.5, 1.0, 2.0)},
        bound=lambda n, p, epsilon: (n**-0.5 / epsilon, n**-1.0 / epsilon),
    )
    known, measured = _measured(theorem, n=-0.7, epsilon=-1.5)
    along = {line.axis: line for line in rates.lines(measured, known)}
    assert along["n"].first.value == pytest.approx(-0.7, abs=0.02)
    assert along["n"].first.values == (100, 1000)  # at 10 rows nothing was left
    assert along["n"].promise == pytest.approx((-0.5, -1.0))
    assert along["n"].verdict == "as promised"  # between the terms of the bound
    assert "worse" in along["epsilon"].verdict  # less epsilon costs more than promised
    assert [each.holds for each in rates.experiment(known).verdicts(measured)] == [True, False]
    assert "10 (100%)" in "\n".join(rates.experiment(known).page(measured))
    draw = rates.experiment(known).draw
    assert draw is not None
    draw(measured)


@pytest.mark.parametrize(
    ("axis", "exponent", "word"),
    [
        ("n", -1.0, "better"),
        ("n", -0.1, "worse"),
        ("p", 2.0, "worse"),
        ("p", -2.0, "better"),
        ("epsilon", -0.1, "better"),
        ("epsilon", -2.0, "worse"),
        ("epsilon", -0.55, "as promised"),
    ],
)
def test_what_harms_is_worse(axis: str, exponent: float, word: str) -> None:
    assert word in verdict(axis, Slope(exponent, 0.01, VALUES), (-0.5,))


def test_the_population_is_that_of_the_rows() -> None:
    truth, _ = theorems.population(4)
    sample = theorems.drawn(400_000, 4, np.random.default_rng(2))
    np.testing.assert_allclose(sample, truth, atol=0.003)
    assert np.trace(truth) == pytest.approx(1)
    assert np.count_nonzero(truth) == 8
    np.testing.assert_allclose(theorems.population(6, 0.0)[0], np.eye(6) / 6)


def test_every_theorem_measures_the_noises_that_it_has() -> None:
    for key, known in theorems.THEOREMS.items():
        assert PAPERS[key].experiments["rates"].settings
        for name, theorem in known.items():
            n = 200_000 if "local" in theorem.statement else 20_000
            figures = theorem.error(np.random.default_rng(3), n, 4, 8.0)
            noises = [noise for noise in rates.NOISES if noise in figures]
            assert noises, (key, name)
            assert all(figures[noise] > 0 for noise in noises), (key, name)


def test_independent_columns_have_an_error_where_the_bound_is_zero() -> None:
    figures = theorems.SGZ["Theorem 4.5, s = 0"].error(np.random.default_rng(4), 100_000, 4, 4.0)
    assert figures["sound"] > 0.01
