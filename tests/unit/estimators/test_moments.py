"""Means and classes, from one noisy matrix with a column of ones and columns of levels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.estimators.uncertainty.moment_errors import centred_moment, means, tail_factor
from gramercy.reports.correlations import correlations
from gramercy.schemas import families
from gramercy.schemas.column import INTERCEPT
from gramercy.schemas.evidence import ROW_LENGTHS, Evidence, Histogram, NoiseTerm
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.problem import Family
from tests.support.factories import run_command, run_release, write_request
from tests.support.noisy_matrices import gaussian_law, goe
from tests.support.simulated_release import declared_columns, released

COLUMNS = {"age": {"lower": 0.0, "upper": 100.0}, "kind": {"levels": ["a", "b"]}}


def write_levels_request(folder: Path, *, bound: float, kind: str) -> pd.DataFrame:
    stream = np.random.default_rng(3)
    label = stream.choice(["a", "b", "other"], size=4000, p=[0.5, 0.3, 0.2])
    age = np.where(label == "a", 30, 60) + stream.uniform(-10, 10, size=4000)
    frame = pd.DataFrame({"kind": label, "age": age})
    frame.to_csv(folder / "table.csv", index=False)
    how = {"kind": "clip", "radius": bound} if kind == "clip" else "unit"
    mechanism = {"name": "gaussian", "epsilon": 200.0, "delta": 1e-6}
    write_request(
        folder,
        rows=4000,
        columns=COLUMNS,
        intercept=True,
        budget={"epsilon": 900.0, "delta": 1e-5},
        request={"normalisation": how, "mechanism": mechanism},
    )
    return frame


@pytest.mark.slow
def test_overall_means_and_class_means_of_a_release(tmp_path: Path, home: Path) -> None:
    frame = write_levels_request(tmp_path, bound=2.0, kind="clip")
    done = run_release(tmp_path / "request.yaml")
    bundle = read_release(home / "archive/toy" / done / "release")
    assert bundle.manifest.names == [INTERCEPT, "age", "kind=a", "kind=b"]
    assert "a column of ones is put first" in bundle.manifest.card["pre_processing"]
    overall = means(bundle.evidence, 0)
    assert overall
    # No row is longer than 2, so all weights are equal: plain means, up to rounding and noise.
    _, age, share_a, share_b = overall.value
    assert 50 + 50 * age == pytest.approx(frame["age"].mean(), abs=0.5)
    assert share_a == pytest.approx((frame["kind"] == "a").mean(), abs=0.01)
    assert share_b == pytest.approx((frame["kind"] == "b").mean(), abs=0.01)
    of_a = means(bundle.evidence, 2)
    assert of_a
    assert 50 + 50 * of_a.value[1] == pytest.approx(30, abs=1)


@pytest.mark.slow
def test_unit_rows_are_weighted_by_length(tmp_path: Path, home: Path) -> None:
    frame = write_levels_request(tmp_path, bound=0, kind="unit")
    done = run_release(tmp_path / "request.yaml")
    bundle = read_release(home / "archive/toy" / done / "release")
    scaled = (frame["age"].to_numpy() - 50) / 50
    weight = 1 / (1 + scaled**2 + frame["kind"].isin(["a", "b"]))
    overall = means(bundle.evidence, 0)
    assert overall
    assert overall.value[1] == pytest.approx(np.average(scaled, weights=weight), abs=0.01)


def evidence_of(matrix: Array, law: NoiseLaw, root: Array | None = None) -> Evidence:
    """Evidence of a matrix; `root`: G of its noise G E G^T."""
    terms = () if root is None else (NoiseTerm(law, root),)
    return Evidence(matrix, matrix, law, 1000.0, terms=terms)


@pytest.mark.slow
@pytest.mark.parametrize("root", [None, [[1.0, 0.0, 0.3], [0.0, 0.8, 0.5], [0.3, 0.5, 0.6]]])
def test_stated_deviations_of_means_and_centred_moment_match_simulation(root: Any) -> None:
    """4,000 draws: the standard error of a deviation is 1.1 % of it, the tolerance 6 %."""
    stream = np.random.default_rng(5)
    root = None if root is None else np.array(root)
    law = gaussian_law(0.01 / 2**0.5)
    truth = np.array([[0.4, 0.2, -0.1], [0.2, 0.3, 0.0], [-0.1, 0.0, 0.3]])
    drawn: list[tuple[Array, Array]] = []
    for _ in range(4000):
        noise = goe(stream, 3, law.sd_off_diagonal)
        noisy = evidence_of(truth + (noise if root is None else root @ noise @ root), law, root)
        of, centred = means(noisy, 0), centred_moment(noisy)
        assert of
        assert centred
        drawn.append((of.value, centred.matrix))
    exact = evidence_of(truth, law, root)
    of, centred = means(exact, 0), centred_moment(exact)
    assert of
    assert centred
    np.testing.assert_allclose(centred.matrix, [[0.2, 0.05], [0.05, 0.275]], atol=1e-12)
    for each, sd in zip(zip(*drawn, strict=True), (of.sd, centred.sd), strict=True):
        np.testing.assert_allclose(np.std(each, axis=0), sd, rtol=0.06, atol=1e-12)
    lost = evidence_of(truth * 0.01, law, root)
    assert means(lost, 0) is None
    assert centred_moment(lost) is None


@pytest.mark.slow
def test_correlations_with_intercept_are_about_the_means(tmp_path: Path, home: Path) -> None:
    """With an intercept, the report's correlations are about the means."""
    stream = np.random.default_rng(4)
    pd.DataFrame({"a": stream.normal(2, 1, 4000), "b": stream.normal(3, 1, 4000)}).to_csv(
        tmp_path / "table.csv", index=False
    )
    columns = {n: {"lower": -20.0, "upper": 20.0, "centre": 0.0, "scale": 1.0} for n in "ab"}
    found_by_intercept = {}
    for version, intercept in (("v1", False), ("v2", True)):
        mechanism = {"name": "gaussian", "epsilon": 800.0, "delta": 1e-6}
        how = {"kind": "clip", "radius": 8.0}
        request = {"version": version, "mechanism": mechanism, "normalisation": how}
        budget = {"epsilon": 900.0, "delta": 1e-5}
        facts = {"id": f"t{version}", "rows": 4000, "columns": columns, "budget": budget}
        done = run_release(write_request(tmp_path, request=request, intercept=intercept, **facts))
        bundle = read_release(home / "archive" / f"t{version}" / done / "release")
        found_by_intercept[intercept] = correlations(bundle)
    assert found_by_intercept[False].matrix[0, 1] > 0.7
    assert found_by_intercept[True].names == ["a", "b"]
    assert abs(found_by_intercept[True].matrix[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("change", "problem", "key"),
    [
        ({"columns": {"k": {"levels": ["a", "a"]}}}, families.LEVELS, "columns.k"),
        ({"columns": {"k": {"levels": [1, "a"]}}}, families.LEVELS, "columns.k"),
        ({"columns": {"k": {"levels": ["NA"]}}}, families.LEVELS, "columns.k"),
        ({"columns": {"k": {"levels": []}}}, families.KEY, "columns.k.levels"),
        ({"columns": {"k": {"levels": ["a"], "lower": 0}}}, families.KEY, "columns.k"),
        ({"columns": {"k": {"levels": ["a"]}, "k=a": COLUMNS["age"]}}, families.COLUMNS, "'k=a'"),
        ({"columns": {INTERCEPT: COLUMNS["age"]}, "intercept": True}, families.COLUMNS, INTERCEPT),
        ({"intercept": 1}, families.VALUE, "intercept"),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_invalid_columns_are_refused_by_name(
    change: dict[str, object],
    problem: Family[Any],
    key: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = run_command("plan", write_request(tmp_path, **change), capsys=capsys)
    assert code == 2
    assert problem.code in err
    assert key in err


@pytest.mark.slow
def test_levels_and_intercept_are_fixed_terms(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_levels_request(tmp_path, bound=2.0, kind="clip")
    run_release(tmp_path / "request.yaml")
    for change in (
        {"columns": COLUMNS},
        {"columns": COLUMNS | {"kind": {"levels": ["a", "c"]}}, "intercept": True},
    ):
        facts = {"rows": 4000, "budget": {"epsilon": 900.0, "delta": 1e-5}}
        code, _, err = run_command(
            "plan", write_request(tmp_path, **facts, **change), capsys=capsys
        )
        assert code == 2
        assert families.TERMS.code in err


def test_means_of_noisy_rows_are_not_stated() -> None:
    """The noise deviations of noisy rows differ by entry, so that none is stated."""
    law = NoiseLaw(family="noisy-rows", sd_diagonal=1e-3, sd_off_diagonal=1e-3, cell_variance=1e-4)
    truth = np.array([[0.4, 0.2], [0.2, 0.3]])
    assert means(evidence_of(truth, law), 0) is None
    assert centred_moment(evidence_of(truth, law)) is None


# The factor for heavy tails: from published lengths, relative to Gaussian rows.


Array = NDArray[np.float64]
EDGES = 2 ** (np.arange(26) / 4)  # quarter octaves, as in releases
RADIUS = 9.0  # the largest that is chosen for five columns


def rows(tails: float | None, mean: float = 0.0, number: int = 20_000) -> Array:
    """Four columns; with tails, Student's t distribution with so many degrees of freedom."""
    rng = np.random.default_rng(6)
    table = rng.normal(size=(number, 4))
    if tails is not None:
        table *= np.sqrt(tails / rng.chisquare(tails, size=number))[:, None]
    moved: Array = table + mean
    return moved


def with_lengths(table: Array, sd: float, seed: int = 0) -> Evidence:
    """A release without noise in its matrix; the histogram of lengths has noise of this size."""
    columns = [
        each.model_copy(update={"scale": 1.0}) for each in declared_columns([(-99.0, 99.0)] * 4)
    ]
    counts = np.histogram(np.hypot(1.0, np.linalg.norm(table, axis=1)), [*EDGES, np.inf])[0]
    noise = np.rint(np.random.default_rng(seed).normal(size=len(EDGES)) * sd).astype(np.int64)
    histogram = Histogram(
        4,
        ROW_LENGTHS,
        EDGES,
        np.append(EDGES[1:], np.nan),
        (None,) * len(EDGES),
        counts + noise,
        sd,
    )
    return replace(released(table, columns, RADIUS), histograms=(histogram,))


@pytest.mark.parametrize("mean", [0.0, 2.0])
def test_gaussian_rows_have_the_factor_one_wherever_their_means_are(mean: float) -> None:
    assert tail_factor(with_lengths(rows(None, mean), 1.0)) == pytest.approx(1.0, abs=0.2)


def test_it_is_the_variance_of_squared_lengths_over_that_of_gaussian_rows() -> None:
    table = rows(8.0)
    evidence = with_lengths(table, 1.0)
    exact = ((table**2).sum(axis=1)).var() / (2 * (np.cov(table.T) ** 2).sum())
    assert exact > 1.8
    assert tail_factor(evidence) == pytest.approx(exact, rel=0.1)
    assert tail_factor(replace(evidence, histograms=())) == 1.0


@pytest.mark.slow
@pytest.mark.parametrize(("tails", "least"), [(None, 1.0), (4.0, 3.2)])
def test_noise_in_the_counts_of_long_rows_does_not_make_it_larger(
    tails: float | None, least: float
) -> None:
    """Most of the bins are empty, and noise in them would count as rows of the largest length."""
    table = rows(tails)
    exact = tail_factor(with_lengths(table, 1e-9))
    noisy = [tail_factor(with_lengths(table, 20.0, seed)) for seed in range(30)]
    assert least <= np.mean(noisy) <= 1.05 * exact


def test_lengths_within_the_noise_say_nothing() -> None:
    evidence = with_lengths(rows(4.0, number=100), 1.0)
    (lengths,) = evidence.histograms
    hidden = replace(lengths, count=np.zeros_like(lengths.count))
    assert tail_factor(replace(evidence, histograms=(hidden,))) == 1.0
