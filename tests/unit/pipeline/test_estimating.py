"""Conformance of every estimator of the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy import estimators
from gramercy.archive.bundles.bundle_kinds import read_estimate
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.estimators import Estimate, Estimator, Evidence
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.noise.draws import draw, stream
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import (
    estimator_from_settings,
    make_estimate,
    make_report,
)
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.noise import Family, NoiseLaw
from tests.support.factories import run_release, write_request
from tests.support.problems import raises

NAMES = list(estimators.registry)
# These need columns in their own units or levels, which the matrices here lack.
OF_TABLES = {"discriminant", "regression", "tables", "moments", "synthetic"}
OF_TABLES |= {"quadratic-discriminant", "joint-graphical-lasso", "difference", "reliability"}
PLAIN = [name for name in NAMES if name not in {*OF_TABLES, "pool"}]  # a pool needs releases
# Settings without a default.
REQUIRED = {
    "regression": {"formula": "c0 ~ ."},
    "pool": {"releases": ["toy/v1-r1"]},
    "difference": {"between": ["A", "B"]},
}


def estimator(name: str, **settings: Any) -> Estimator:
    return estimators.registry[name](name=name, **REQUIRED.get(name, {}), **settings)


def law(family: Family, p: int, sd: float) -> NoiseLaw:
    dof = {"wishart": p + 20.0, "matrix-laplace": p + 1.0}.get(family)
    rows = {"cell_variance": 0.05} if family == "noisy-rows" else {}
    diagonal = sd if family in {"gaussian-iid", "laplace"} else sd * np.sqrt(2)
    return NoiseLaw(family=family, sd_diagonal=float(diagonal), sd_off_diagonal=sd, dof=dof, **rows)


def chain_evidence(
    p: int, sd: float, family: Family = "gaussian-isotropic", rows: float = 500
) -> Evidence:
    """The noisy second moment of a chain, deterministic for each p."""
    truth = 0.5 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p))) / p
    noise = law(family, p, sd)
    raw = truth + (draw(stream(), p, noise) if sd else 0.0)
    return Evidence(raw, project(raw), noise, rows, tuple(f"c{i}" for i in range(p)))


def assert_valid(estimate: Estimate, p: int) -> None:
    for matrix in estimate.matrices.values():
        assert matrix.shape == (p, p)
        assert np.isfinite(matrix).all()
        assert (matrix == matrix.T).all()
    if estimate.edges is not None:
        assert (estimate.edges == estimate.edges.T).all()
        assert not np.diag(estimate.edges).any()
        assert np.isfinite(estimate.edges).all()
    assert all(np.isfinite(list(estimate.tuning.values())))
    assert estimate.matrices or estimate.tables
    if estimate.kind == "precision":
        np.linalg.cholesky(estimate.matrix)


@pytest.mark.parametrize("sd", [1e-5, 0.02, 5.0])
@pytest.mark.parametrize("p", [1, 2, 7])
@pytest.mark.parametrize("name", PLAIN)
def test_estimators_accept_any_noise_level_and_are_deterministic(
    name: str, p: int, sd: float
) -> None:
    """From almost no noise to pure noise; repeated estimates are equal."""
    evidence = chain_evidence(p, sd)
    estimate = estimator(name).fit(evidence)
    assert_valid(estimate, p)
    again = estimator(name).fit(evidence)
    for key, matrix in estimate.matrices.items():
        assert (again.matrices[key] == matrix).all()
    assert again.tuning == estimate.tuning


@pytest.mark.parametrize(
    "family",
    ["gaussian-iid", "laplace", "k-norm", "matrix-laplace", "wishart", "noisy-rows", "none"],
)
@pytest.mark.parametrize("name", PLAIN)
def test_estimators_accept_every_noise_family(name: str, family: Family) -> None:
    evidence = chain_evidence(6, 0.0 if family == "none" else 0.02, family)
    assert_valid(estimator(name).fit(evidence), 6)


@pytest.mark.parametrize("name", NAMES)
def test_settings_round_trip_through_a_manifest(name: str) -> None:
    made = estimator(name)
    assert estimator_from_settings(made.model_dump()) == made
    assert made.id.startswith(f"{name}-")
    assert estimator(name).id == made.id


def write_table_with_levels(folder: Path) -> None:
    rng = np.random.default_rng(3)
    kind = rng.integers(0, 2, size=400)
    numbers = rng.normal(size=(400, 3)) + 2.0 * kind[:, None]
    table = pd.DataFrame(numbers, columns=["c0", "c1", "c2"])
    kinds = {"kind": np.array(["a", "b"])[kind], "ward": rng.choice(["A", "B"], 400)}
    table.assign(**kinds).to_csv(folder / "table.csv", index=False)


@pytest.mark.slow
def test_all_estimates_of_one_release_are_verified(tmp_path: Path) -> None:
    """They are sealed, shown in one report, and verified. The release has groups."""
    write_table_with_levels(tmp_path)
    columns: dict[str, Any] = {f"c{i}": {"lower": -5.0, "upper": 7.0} for i in range(3)}
    columns |= {"kind": {"levels": ["a", "b"]}, "ward": {"levels": ["A", "B"]}}
    request: dict[str, Any] = {"mechanism": {"name": "gaussian", "epsilon": 7.5, "delta": 1e-6}}
    request |= {"normalisation": {"kind": "clip", "radius": 2.0}, "by": "ward"}
    budget = {"epsilon": 30.0, "delta": 1e-5}
    facts = {"rows": 400, "columns": columns, "intercept": True, "budget": budget}
    assert run_release(write_request(tmp_path, request=request, **facts)) == "v1-r1"
    request["mechanism"]["epsilon"] = 20.0
    release = run_release(write_request(tmp_path, request=request, **facts))
    archive = open_archive(Home.default().archive)
    made = [make_estimate(Context.default(), "toy", release, estimator(name)) for name in NAMES]
    for bundle in made:
        stamp = "post-processing of the release; no further privacy cost"
        assert bundle.manifest.privacy == stamp
    ids = [each.manifest.estimate for each in made]
    page = make_report(Context.default(), "toy", release, ids).page
    for name in NAMES:
        assert f"<h3>{name}" in page
    result = verify_release(archive, "toy", release, None)
    assert len([check for check in result.checks if check.startswith("estimate")]) == len(NAMES)
    assert not result.unchecked
    again = read_estimate(archive.estimate("toy", release, estimator("discoveries").id))
    assert again.edges is not None


def test_discriminant_requires_levels() -> None:
    with raises(families.ESTIMATE):
        estimator("discriminant").fit(chain_evidence(4, 0.01))


@pytest.mark.slow
def test_class_lost_in_the_noise_has_no_share(tmp_path: Path) -> None:
    """Its unknown values are NaN, on disk and in verification."""
    write_table_with_levels(tmp_path)
    columns: dict[str, Any] = {f"c{i}": {"lower": -5.0, "upper": 7.0} for i in range(3)}
    columns["kind"] = {"levels": ["a", "b", "c", "d", "e"]}  # the last three classes have no rows
    request = {"mechanism": {"name": "gaussian", "epsilon": 2.5, "delta": 1e-6}}
    request |= {"normalisation": {"kind": "clip", "radius": 2.0}}
    facts = {"rows": 400, "columns": columns, "intercept": True}
    release = run_release(write_request(tmp_path, request=request, **facts))
    archive = open_archive(Home.default().archive)
    made = make_estimate(Context.default(), "toy", release, estimator("discriminant"))
    assert made.tables["classes"].set_index("class")["share"][["c", "d", "e"]].isna().any()
    make_report(Context.default(), "toy", release, [made.manifest.estimate])
    assert not verify_release(archive, "toy", release, None).unchecked
