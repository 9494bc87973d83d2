"""The quality of a release: recurring edges and the effective number of rows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_estimate, read_release
from gramercy.estimators import registry
from gramercy.estimators.about_means import DependenceEstimator
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.ridge import Ridge
from gramercy.estimators.tuning.stability import edge_frequencies
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate
from gramercy.reports.correlations import correlations, effective_rows
from gramercy.reports.estimate_summary import EstimateSummary, meaningless_pairs
from gramercy.reports.release_report import release_page
from gramercy.schemas.column import INTERCEPT
from tests.support.chain_graphs import chain_evidence
from tests.support.factories import MECHANISM, run_pipeline, run_release, write_request
from tests.test_architecture import ROOT


@pytest.mark.slow
def test_strong_edges_recur_and_chance_edges_do_not() -> None:
    neighbours = np.eye(6, k=1, dtype=bool) | np.eye(6, k=-1, dtype=bool)
    evidence = chain_evidence(0.001)
    shares = edge_frequencies(evidence, GraphicalLasso(penalty=0.1), {"penalty": 0.1})
    assert (shares[neighbours] == 1).all()
    assert (shares == shares.T).all()
    assert (np.diag(shares) == 0).all()
    others = ~neighbours & ~np.eye(6, dtype=bool)
    noisy = edge_frequencies(chain_evidence(1.0), GraphicalLasso(penalty=0.5), {"penalty": 0.5})
    assert noisy[neighbours].mean() < 0.8
    assert noisy[neighbours].mean() == pytest.approx(noisy[others].mean(), abs=0.35)


def test_selected_penalty_is_reused_in_redraws() -> None:
    evidence, estimator = chain_evidence(0.05), GraphicalLasso(penalty="ebic")
    tuning = estimator.fit(evidence).tuning
    expected = edge_frequencies(
        evidence, GraphicalLasso(penalty=tuning["penalty"]), tuning, draws=5
    )
    np.testing.assert_array_equal(edge_frequencies(evidence, estimator, tuning, draws=5), expected)


WITH_GRAPHS = [name for name in registry if issubclass(registry[name], DependenceEstimator)]


@pytest.mark.parametrize("name", [*WITH_GRAPHS, "discoveries"])
def test_edge_frequencies_of_every_graph_estimator(name: str) -> None:
    evidence, estimator = chain_evidence(0.01), registry[name].model_validate({"name": name})
    estimate = estimator.fit(evidence)
    assert estimate.edges is not None
    shares = edge_frequencies(evidence, estimator, estimate.tuning, draws=5)
    strong = np.abs(estimate.edges) > 0.25
    assert strong.any()
    assert (shares[strong] == 1).all()


def bundle(folder: Path, version: str, epsilon: float) -> ReleaseBundle:
    request = {"version": version, "mechanism": MECHANISM | {"epsilon": epsilon}}
    budget = {"epsilon": 1000.0, "delta": 1e-5}
    name = run_release(write_request(folder, request=request, budget=budget))
    return read_release(Context.default().archive.release("toy", name))


@pytest.mark.slow
def test_effective_rows_under_noise(tmp_path: Path) -> None:
    little, much = bundle(tmp_path, "v1", 900.0), bundle(tmp_path, "v2", 5.0)
    precise, noisy = effective_rows(little), effective_rows(much)
    assert 39 < precise.median <= 40
    assert noisy.low <= noisy.median <= noisy.high < precise.low
    assert noisy.share == pytest.approx(noisy.median / 40)
    # Recompute from the errors: n s^2 / (s^2 + v^2).
    from gramercy.estimators.uncertainty.entries import second_moment

    errors = second_moment(much.evidence)
    pairs = np.triu_indices(3, 1)
    s, v = errors.sampling_error[pairs], errors.noise_error[pairs]
    assert noisy.median == pytest.approx(np.median(40 * s**2 / (s**2 + v**2)))


@pytest.mark.slow
def test_report_shows_recurring_edges_and_effective_rows(tmp_path: Path) -> None:
    release = bundle(tmp_path, "v1", 900.0)
    sparse, dense = (
        make_estimate(Context.default(), "toy", "v1-r1", each)
        for each in (GraphicalLasso(penalty=0.03), Ridge())
    )
    page = release_page(release, [sparse, dense])
    assert "Effective number of rows" in page
    assert "stability" not in dense.matrices
    assert sparse.manifest.matrices == ("precision", "stability")
    summary = EstimateSummary.of(sparse)
    assert 0 <= summary.stable_edges <= summary.edges == 2
    counts = re.search(r"(\d+) of the (\d+) edges recur", page)
    assert counts
    assert [int(x) for x in counts.groups()] == [summary.stable_edges, summary.edges]
    assert page.count("stability</th>") == 1


def dead_column(folder: Path) -> Path:
    """A release with a column, `dead`, that is nothing but noise."""
    folder.mkdir()
    rng = np.random.default_rng(4)
    first, second = rng.normal(size=(2, 2000))
    columns = {"a": first, "b": first + second, "dead": 1e-6 * second}
    table = pd.DataFrame(columns | {"ward": rng.choice(["A", "B"], 2000)})
    table.to_csv(folder / "table.csv", index=False)
    bounds = {"lower": -5.0, "upper": 5.0}
    request = write_request(
        folder,
        rows=2000,
        budget={"epsilon": 200.0, "delta": 1e-5},
        columns={name: bounds for name in columns} | {"ward": {"levels": ["A", "B"]}},
        intercept=True,
        request={
            "version": f"v{folder.name}",  # another draw, not a replay
            "mechanism": {"name": "gaussian", "epsilon": 20.0, "delta": 1e-6},
            "normalisation": {"kind": "clip", "radius": 4.0},
            "estimates": [{"name": "ridge"}, {"name": "thresholded", "threshold": 1e-9}],
        },
    )
    return run_pipeline(request)


def is_dead(root: Path) -> bool:
    found = correlations(read_release(root / "release"))
    return bool(np.isnan(found.matrix[found.names.index("dead")]).all())


@pytest.mark.slow
def test_meaningless_edges_are_not_listed(tmp_path: Path) -> None:
    """Between levels of one column, and with a column that is nothing but noise.

    Its variance exceeds twice the noise once in forty releases: then the next one serves.
    """
    root = next(filter(is_dead, (dead_column(tmp_path / str(i)) for i in range(5))))
    release = read_release(root / "release")
    estimates = [read_estimate(each) for each in root.glob("estimates/*")]
    names = release.manifest.names
    meaningless = meaningless_pairs(release)
    among = {
        (a, b)
        for i, a in enumerate(names)
        for j, b in enumerate(names[:i])
        if not meaningless[i, j] and INTERCEPT not in (a, b)
    }
    assert among == {("b", "a"), *((f"ward={w}", c) for w in "AB" for c in "ab")}
    for estimate in estimates:
        summary = EstimateSummary.of(estimate, meaningless=meaningless)
        assert {frozenset(each[:2]) for each in summary.strongest} <= {frozenset(x) for x in among}
        # A ridge estimate leaves out one level, the reference, and the dead column.
        unlisted = 0 if summary.name == "ridge" else 5
        assert summary.unlisted == summary.edges - len(summary.strongest) == unlisted


REDRAWS = """
import numpy as np
from tests.support.chain_graphs import chain_evidence
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.tuning.stability import edge_frequencies
from gramercy.schemas.noise import NoiseLaw
rows = NoiseLaw(family="noisy-rows", sd_diagonal=0.1, sd_off_diagonal=0.1, cell_variance=0.5)
for law, count in ((None, 40), (rows, 4000)):
    evidence = chain_evidence(0.3, count, law=law)
    print(edge_frequencies(evidence, GraphicalLasso(penalty=0.2), {"penalty": 0.2}).tolist())
"""


@pytest.mark.slow
def test_redraws_are_equal_across_blas_kernels() -> None:
    """Kernels round differently, and choose different eigenvectors for equal eigenvalues."""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", REDRAWS],
            env=os.environ | {"OPENBLAS_CORETYPE": core},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for core in ("Haswell", "Nehalem")
    }
    assert len(outputs) == 1
