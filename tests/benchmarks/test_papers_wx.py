"""Wang and Xu's experiments: their covariance, known errors, and verdicts that can be negative."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from benchmarks.graphs.releases import scale
from benchmarks.papers.experiment import Figures, Measured, Verdict
from benchmarks.papers.lw.models import denoised
from benchmarks.papers.task import Sample
from benchmarks.papers.wx import PAPER, figures, models
from benchmarks.papers.wx.models import covariance, moment

Line = tuple[int, float, float]


def test_model_covariance_is_sparse_and_definite() -> None:
    made = covariance(60, 0.2, np.random.default_rng(1))
    off = made - np.diag(np.diag(made))
    assert np.array_equal(made, made.T)
    assert np.count_nonzero(off) == 2 * round(0.2 * 60 * 60 / 2)
    assert np.diag(made) == pytest.approx(np.full(60, 0.25))
    assert 0 <= off.min() < off.max() < 1 / 200
    assert np.linalg.eigvalsh(made)[0] > 0


@pytest.mark.parametrize("n", [3, 12])
def test_drawn_moments_have_wishart_mean_and_variance(n: int) -> None:
    """The mean is S, the variance (S_ij^2 + S_ii S_jj) / n, also with fewer rows than columns."""
    rng = np.random.default_rng(2)
    of = covariance(5, 0.4, rng) + 0.1
    drawn = np.array([moment(of, n, rng) for _ in range(4000)])
    power = np.diag(of)
    variance = (of**2 + np.outer(power, power)) / n
    assert drawn.mean(axis=0) == pytest.approx(of, abs=0.02)
    assert drawn.var(axis=0) == pytest.approx(variance, rel=0.2)
    assert np.linalg.matrix_rank(drawn[0]) == min(n, 5)


@pytest.mark.parametrize(
    ("p", "sr", "known"), [(50, 0.2, 0.11), (100, 0.1, 0.11), (100, 0.5, 0.338)]
)
def test_known_errors_at_2000_rows(p: int, sr: float, known: float) -> None:
    found = figures.measure(np.random.default_rng(3), p=p, sr=sr, n=2000, deviation=figures.central)
    assert found["spectral at 1"] == pytest.approx(known, rel=0.15)
    assert found["column at 1"] > found["spectral at 1"]
    assert not found["zero at 1"]
    assert found["off at 1"] == 0


def test_local_reports_give_the_zero_matrix() -> None:
    found = figures.measure(
        np.random.default_rng(4), p=200, sr=0.2, n=2000, deviation=figures.local
    )
    assert {name.split(" at ")[1] for name in found} == {"0.1", "0.5", "1", "2"}
    for epsilon in (0.1, 0.5, 1):
        assert found[f"zero at {epsilon:g}"]
        for error in ("spectral", "column"):
            assert found[f"{error} at {epsilon:g}"] == pytest.approx(1)


def verdicts(name: str, error: Callable[[Line], float], zero: bool) -> list[Verdict]:
    found = {}
    for setting in figures.SETTINGS:
        at = dict(setting)
        p, sr = int(at["p"]), float(at["sr"])
        made: Figures = {}
        for epsilon in figures.epsilons(p):
            for norm in figures.NORMS:
                made[f"{norm} at {epsilon:g}"] = error((p, sr, epsilon))
            made[f"zero at {epsilon:g}"] = zero
            made[f"off at {epsilon:g}"] = 0 if zero else 8
        found[setting] = [made]
    return list(PAPER.experiments[name].verdicts(Measured(found)))


def test_verdicts_of_the_figures() -> None:
    claimed = verdicts("central", lambda line: line[1] / line[2], zero=False)
    assert [each.holds for each in claimed] == [True, True, False, True, True]
    other = verdicts("central", lambda line: line[0] / line[1] * line[2], zero=True)
    assert [each.holds for each in other] == [False, False, True, False, False]
    nothing = verdicts("local", lambda _: 1.0, zero=True)
    assert [each.holds for each in nothing] == [False, True, False, False, False, True]
    assert not verdicts("local", lambda _: 1.0, zero=False)[-1].holds


def test_rows_are_longer_than_the_noise_assumes() -> None:
    found = models.measure(np.random.default_rng(5), p=50)
    assert found["median"] == pytest.approx(3.5, abs=0.1)
    assert found["within"] == 0
    assert found["epsilon"] > 5
    measured = Measured({(("p", 50),): [found]})
    assert not next(iter(models.EXPERIMENT.verdicts(measured))).holds
    short = Measured({(("p", 50),): [found | {"within": 0.9}]})
    assert next(iter(models.EXPERIMENT.verdicts(short))).holds


def test_averaged_reports_have_the_stated_noise() -> None:
    rng, rows = np.random.default_rng(6), np.zeros((400, 30))
    found = models.reports(rows, 1.0, rng)
    sd = scale("gaussian-iid", 30, 1.0) / 20
    assert found.law.sd_off_diagonal == pytest.approx(sd)
    upper = found.raw[np.triu_indices(30)]
    assert upper.std() == pytest.approx(sd, rel=0.15)
    assert denoised(found, Sample(rows, found.repaired)) == 0
