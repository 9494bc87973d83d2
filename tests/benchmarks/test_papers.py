"""The papers' framework: runs resume, results determine the page, and verdicts can be negative."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from benchmarks.cells import append
from benchmarks.graphs.releases import DELTA, exact, isotropic, scale
from benchmarks.papers import cells, claims, page, sound
from benchmarks.papers.experiment import Figures, Mean, Measured, grid, short
from benchmarks.papers.papers import PAPERS
from benchmarks.papers.task import Sample, Task, measure
from gramercy.mechanisms.accounting.gdp import gdp_delta
from gramercy.schemas.evidence import Evidence

EPSILON = 2.0
STORED = Path(__file__).parents[2] / "benchmarks" / "papers" / "results"


def of(**figures: float) -> Figures:
    return dict(figures)


def test_settings_grid_and_means() -> None:
    settings = grid(model=(1, 2), n=(10, 20))
    assert settings[1] == (("model", 1), ("n", 20))
    found = Measured({settings[0]: [of(a=1.0), of(a=3.0), of(a=math.nan)]})
    assert found.has(n=10, model=1)
    assert not found.has(model=2, n=10)
    mean = found.mean("a", n=10, model=1)
    assert (mean.mean, mean.count) == (2.0, 2)
    assert mean.error == pytest.approx(1.0)
    assert [short(x) for x in (1953.2, 26.11, 0.4912, 0.0231, 0.0)] == [
        "1,953", "26.1", "0.491", "0.0231", "0.00",
    ]  # fmt: skip


def test_every_experiment_has_unique_settings() -> None:
    for key, paper in PAPERS.items():
        for name, experiment in paper.experiments.items():
            assert len(set(experiment.settings)) == len(experiment.settings), (key, name)
            assert experiment.quick, (key, name)
            assert set(experiment.quick) <= set(experiment.settings), (key, name)
            assert experiment.repetitions >= experiment.quick_repetitions > 0, (key, name)


def test_runs_resume_and_determine_the_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["claims", "--jobs", "1", "--out", str(tmp_path)]
    folder = tmp_path / "results"
    folder.mkdir()
    kept, claims_page = folder / "claims.jsonl", folder / "claims.md"
    stored, planned = cells.read(STORED), list(cells.plan(["claims"], quick=False))
    assert len(planned) == len(claims.ALL)
    for cell in planned[:-1]:
        append(kept, stored[cell])
    # The last line is missing, and the line before it is cut short.
    *lines, last = kept.read_text().splitlines()
    kept.write_text("\n".join((*lines, last[:20])))
    page.BENCHMARK.main(arguments)
    assert len(kept.read_text().splitlines()) == len(planned) + 1
    results = cells.read(tmp_path / "results")
    assert {cell.setting for cell in results} == set(grid(claim=tuple(claims.ALL)))
    written = claims_page.read_text()
    expected = page.pages({cell: stored[cell] for cell in planned})["results/claims.md"]
    assert written.splitlines()[:-1] == expected.splitlines()[:-1]  # the last has the elapsed time
    page.write(results, tmp_path)
    assert claims_page.read_text() == written
    assert "(results/claims.md)" in (tmp_path / "results.md").read_text()
    with pytest.raises(SystemExit):
        page.BENCHMARK.main(["no-such-paper", "--out", str(tmp_path)])
    assert "no-such-paper" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "epsilon"),
    [
        ("lw: Table 1, p = 50, the same noise", 25),
        ("lw: Table 1, p = 100, the same noise", 77),
        ("lw: Table 1, p = 200, the same noise", 255),
        ("gpp: 20 dB, Gaussian on every cell; a typical row, 11 columns", 1299),
        ("gpp: 10 dB, Gaussian on every cell; a typical row, 11 columns", 172),
    ],
)
def test_exact_epsilon_of_published_claims(said: str, epsilon: float) -> None:
    (key,) = (key for key in claims.ALL if key.startswith(said))
    rng = np.random.default_rng(0)
    assert claims.measure(rng, claim=key)["epsilon"] == pytest.approx(epsilon, rel=0.02)


def test_exact_delta_of_wishart_noise_claimed_as_pure() -> None:
    """Delta is exactly 1 - e^(-epsilon / 3) under add-remove."""
    (key,) = (
        key
        for key in claims.ALL
        if key.startswith("whx: Table 1, Wishart, p = 20; a row present") and key.endswith(", 1, 0")
    )
    found = claims.measure(np.random.default_rng(0), claim=key)
    assert found["delta"] == pytest.approx(1 - math.exp(-1 / 3), rel=1e-6)
    assert math.isinf(found["epsilon"])


P = 24  # the noises are compared over a number of releases that falls with the square of P


def _task(**keys: object) -> Task:
    def sample(rng: np.random.Generator) -> Sample:
        rows = rng.standard_normal((200, P))
        return Sample(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def error(evidence: Evidence, made: Sample) -> float:
        return float(np.linalg.norm(evidence.repaired - exact(made.rows).raw)) + 0.1

    usual = {
        "title": "a task",
        "score": "error",
        "how": "denoised",
        "nothing": lambda _: 1.0,
        "repetitions": 3,
    }
    return Task(**{**usual, "sample": sample, "paper": error, "default": error, **keys})  # type: ignore[arg-type]


def _figures(task: Task) -> Figures:
    return measure(np.random.default_rng(1), epsilon=EPSILON, task=task)


def _measured(figures: Figures) -> Measured:
    return Measured({(("epsilon", EPSILON),): [figures]})


def test_both_mechanisms_have_the_guarantee_and_a_noise_ratio_that_verdicts_check() -> None:
    for mechanism in ("gaussian", "gaussian-iid"):
        mu = math.sqrt(2) / scale(mechanism, P, EPSILON)
        assert gdp_delta(mu, EPSILON) == pytest.approx(DELTA, rel=1e-4)
    task = _task()
    figures = _figures(task)
    measured = _measured(figures)
    assert sound.noise_ratio(measured, EPSILON) == pytest.approx(
        math.sqrt(2 * P / (P + 1)), rel=0.02
    )
    experiment = sound.experiment(task)
    (verdict,) = experiment.verdicts(measured)
    assert verdict.holds
    text = "\n".join(experiment.page(measured))
    assert f"200 rows, {P} columns" in text
    assert experiment.draw is not None
    experiment.draw(measured)
    wrong = _measured({**figures, "noise_ours": 1.05 * figures["noise_ours"]})
    assert not next(iter(experiment.verdicts(wrong))).holds


def test_verdict_detects_other_noise() -> None:
    """The verdict is computed from releases, not from formulas."""
    task = _task(own=lambda rows, epsilon, rng: isotropic(rows, epsilon * 0.9, rng))
    (verdict,) = sound.experiment(task).verdicts(_measured(_figures(task)))
    assert not verdict.holds


@pytest.mark.parametrize(
    ("larger", "scores", "ratio", "useful"),
    [
        (False, (0.6, 0.3, 0.1, 1.0), 2.0, (True, True)),
        (False, (1.4, 0.95, 0.1, 1.0), 1.4 / 0.95, (False, False)),
        (True, (0.6, 0.8, 0.9, 0.5), 3.0, (True, True)),
        (True, (0.49, 0.8, 0.9, 0.5), math.inf, (False, True)),
        # The score is not useful, even without privacy.
        (False, (90.0, 1.7, 15.0, 0.5), 90 / 1.7, (False, False)),
        (False, (0.4, 3.6, 3.6, 3.6), 1 / 9, (True, False)),  # only the paper's is useful
    ],
)
def test_ratios_and_useful_scores(
    larger: bool, scores: tuple[float, ...], ratio: float, useful: tuple[bool, bool]
) -> None:
    paper, default, without, nothing = (Mean(score, 0.0, 1) for score in scores)
    line = sound.Line(1.0, paper, paper, default, without, nothing, larger)
    assert line.ratio == pytest.approx(ratio)
    assert (line.useful(line.paper), line.useful(line.default)) == useful
