"""Releases whose matrix is drawn in the metric of a pilot: what they charge, publish and keep."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.archive.seal.signing import create_signing_key
from gramercy.common.home import Home
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.histograms import HistogramNoise
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import calibrate
from gramercy.pipeline.plan.planning import ReleasedMetric
from gramercy.pipeline.publish import drawing
from gramercy.scaling.whitening import Turning
from gramercy.schemas import families
from tests.support.black_box.replay import published_files
from tests.support.conformance import BOTH
from tests.support.factories import (
    crossed,
    read_plan,
    run_release,
    without_salts,
    write_request,
)
from tests.support.problems import raises

ROWS, P = 3000, 4


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAMERCY_HOME", str(tmp_path / "home"))


def correlated(rows: int = ROWS, seed: int = 0) -> pd.DataFrame:
    """A table of columns that are nearly copies of each other, which is worth a metric."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=(rows, 1))
    values = common + 0.2 * rng.normal(size=(rows, P))
    return pd.DataFrame(values, columns=[f"c{j}" for j in range(P)])


def requested(folder: Path, epsilon: float = 20.0, request: Any = None, **facts: Any) -> Path:
    mechanism = {"name": "gaussian", "epsilon": epsilon, "delta": 1e-6}
    keys = {"scaling": "private", "mechanism": mechanism, "estimates": []} | (request or {})
    columns: dict[str, Any] = {f"c{j}": {} for j in range(P)}
    declared = {"rows": ROWS, "columns": columns, "intercept": True}
    budget = {"epsilon": 1000.0, "delta": 1e-4}
    return write_request(folder, request=keys, budget=budget, **declared | facts)


def released(request: Path) -> ReleaseBundle:
    name = run_release(request)
    return read_release(Context.default().archive.release("toy", name))


def test_matrix_is_drawn_in_the_metric_of_the_pilot(tmp_path: Path) -> None:
    table = correlated()
    table.to_csv(tmp_path / "table.csv", index=False)
    bundle = released(requested(tmp_path))
    scaling = bundle.manifest.scaling
    assert scaling is not None
    assert scaling.metric_radius is not None
    evidence = bundle.evidence
    moments = evidence.raw[1:, 1:] / evidence.raw[0, 0]
    moments -= np.outer(evidence.raw[0, 1:], evidence.raw[0, 1:]) / evidence.raw[0, 0] ** 2
    sds = np.sqrt(np.diag(moments))
    assert np.allclose(moments / np.outer(sds, sds), table.corr(), atol=0.02)


def test_internal_record_compares_in_the_units_of_the_release(tmp_path: Path) -> None:
    correlated().to_csv(tmp_path / "table.csv", index=False)
    bundle = released(requested(tmp_path))
    record = Home.default().internal / "toy" / f"{bundle.manifest.release}.json"
    truth = json.loads(record.read_text())["truth"]
    assert truth["released"] < 3 * truth["expected"]
    assert 0.1 < truth["largest"] < 8


def test_folders_of_a_declared_column_do_not_stop_a_release_with_folds(tmp_path: Path) -> None:
    """A pass after the charge must not refuse what the first pass has read."""
    table = correlated()
    kinds = np.where(table["c0"] > 0, "a", "b")
    for kind in "ab":
        folder = tmp_path / "table" / f"kind={kind}"
        folder.mkdir(parents=True)
        table[kinds == kind].to_csv(folder / "part.csv", index=False)
    columns = {f"c{j}": {} for j in range(P)} | {"kind": {"levels": ["a", "b"]}}
    bundle = released(requested(tmp_path, request={"folds": 3}, source="table", columns=columns))
    assert bundle.whitening is not None
    assert len(bundle.folds) == 3


# --- The charge ---------------------------------------------------------------------------------


def with_holes(table: pd.DataFrame) -> pd.DataFrame:
    """Cells of two columns are missing, often together."""
    rng, holes = np.random.default_rng(1), table.copy()
    for name in ("c1", "c2"):
        holes.loc[(rng.random(ROWS) < 0.1) | (np.arange(ROWS) < 500), name] = np.nan
    return holes


CASES: dict[str, dict[str, Any]] = {
    "rows": {},
    "missing cells": {},
    "persons": {"privacy_unit": "who", "persons": 1000},
    "folds": {"request": {"folds": 3}},
    "groups": {
        "request": {"by": "ward"},
        "columns": {f"c{j}": {} for j in range(P)} | {"ward": {"levels": ["A", "B"]}},
    },
}


def of_people(table: pd.DataFrame) -> pd.DataFrame:
    """The same rows, three of each person, in two wards."""
    people = [f"p{k % 1000}" for k in range(len(table))]
    return table.assign(who=people, ward=np.where(table["c0"] > 0, "A", "B"))


DECISIONS = pytest.mark.parametrize("kept", [True, False], ids=["in the metric", "stopped"])


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Makes the decision, regardless of the published lengths."""

    def decide(kept: bool) -> None:
        monkeypatch.setattr(Turning, "radius", lambda *_: 2.5 if kept else None)

    return decide


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[HistogramNoise | Gaussian]:
    """The law of every draw, in their order."""
    seen: list[HistogramNoise | Gaussian] = []
    for kind in (HistogramNoise, Gaussian):
        perturb = kind.perturb

        def spying(law: Any, *exact: Any, perturb: Any = perturb) -> Any:
            seen.append(law)
            return perturb(law, *exact)

        monkeypatch.setattr(kind, "perturb", spying)
    return seen


def mu_of(law: HistogramNoise | Gaussian) -> Fraction:
    return Fraction(law.mu if isinstance(law, HistogramNoise) else law.guarantee.mu)


@DECISIONS
@pytest.mark.parametrize(("case", "neighbours"), crossed([*CASES], BOTH))
def test_all_draws_together_have_the_charged_mu(
    case: str,
    neighbours: str,
    kept: bool,
    tmp_path: Path,
    decide: Callable[[bool], None],
    drawn: list[HistogramNoise | Gaussian],
) -> None:
    """In exact fractions; whether the metric is kept changes neither the charge nor a share."""
    decide(kept)
    table = with_holes(correlated()) if case == "missing cells" else correlated()
    of_people(table).to_csv(tmp_path / "table.csv", index=False)
    request = requested(tmp_path, **{"neighbours": neighbours} | CASES[case])
    planned = read_plan(request).guarantee
    bundle = released(request)
    (charge,) = Context.default().ledger.charges("toy")
    assert charge.guarantee.mu == planned.mu == bundle.manifest.guarantee.mu
    assert charge.guarantee.epsilon(1e-6) <= 20.0
    histograms = [law for law in drawn if isinstance(law, HistogramNoise)]
    assert len(histograms) == 3 + 2  # stages, and lengths in both metrics
    # All parts of a matrix have one law, and one mu together.
    matrices = {law for law in drawn if isinstance(law, Gaussian)}
    assert len(matrices) == (4 if case == "missing cells" else 3)
    parts = {"folds": 2, "groups": 2 + 2}.get(case, 0)  # three groups, also of what is lost
    assert len(drawn) == len(histograms) + len(matrices) + parts
    total = sum(mu_of(law) ** 2 for law in (*histograms, *matrices))
    assert total <= Fraction(planned.mu) ** 2
    assert total > Fraction(planned.mu) ** 2 * (1 - Fraction(1, 10**6))
    scaling = bundle.manifest.scaling
    assert scaling is not None
    assert (scaling.metric_radius is not None) == kept
    assert calibrate(bundle.manifest).guarantee == planned


PASSES = ("sum_for_pilot", "count_lengths", "sum_rows", "sum_further_rows")


@pytest.mark.parametrize("name", PASSES)
def test_failure_between_stages_spends_the_charge(
    name: str,
    tmp_path: Path,
    decide: Callable[[bool], None],
    drawn: list[HistogramNoise | Gaussian],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same request draws nothing more, and a new charge draws everything again."""
    decide(True)
    correlated().to_csv(tmp_path / "table.csv", index=False)
    request, original, calls = requested(tmp_path), getattr(drawing, name), list[str]()

    def failing(*arguments: Any) -> Any:
        calls.append(name)
        if name == "count_lengths" and len(calls) == 1:  # of scaled rows
            return original(*arguments)
        raise MemoryError("3.1415")

    with monkeypatch.context() as patch:
        patch.setattr(drawing, name, failing)
        with raises(families.STEP_FAILED):
            run_release(request)
    before = len(drawn)
    assert before == {"sum_for_pilot": 4, "count_lengths": 5}.get(name, 6)
    ledger = Context.default().ledger
    assert [each.state for each in ledger.charges("toy")] == ["spent"]
    with monkeypatch.context() as patch:
        patch.setattr(sampler, "_bits", None)  # nothing can be drawn
        with raises(families.SPENT, release="toy/v1-r1"):
            run_release(request)
    assert len(drawn) == before
    requested(tmp_path, request={"new_charge": "v1-r1"})
    assert run_release(request) == "v1-r2"
    assert len(drawn) == before + 8
    first, second = ledger.charges("toy")
    assert first.guarantee.mu == second.guarantee.mu


# --- What is published --------------------------------------------------------------------------


def freeze(monkeypatch: pytest.MonkeyPatch, results: list[Any], *, replay: bool) -> None:
    """Record what every draw published, or publish it again regardless of the table."""
    turns = iter(list(results)) if replay else None
    for kind in (HistogramNoise, Gaussian):
        perturb = kind.perturb

        def frozen(law: Any, *exact: Any, perturb: Any = perturb) -> Any:
            if turns is not None:
                return next(turns)
            results.append(perturb(law, *exact))
            return results[-1]

        monkeypatch.setattr(kind, "perturb", frozen)


def published(folder: Path, tables: Sequence[pd.DataFrame], **facts: Any) -> list[dict[str, bytes]]:
    """Publish tables; all with what the draws of the first one published."""
    results, found = list[Any](), []
    create_signing_key(folder / "keys")  # one key, so that equal bytes have equal signatures
    for k, table in enumerate(tables):
        own = folder / str(k)
        own.mkdir()
        table.to_csv(own / "table.csv", index=False)
        shutil.copytree(folder / "keys", own / "home" / "keys")
        with pytest.MonkeyPatch.context() as patch:
            without_salts(patch)
            patch.setenv("GRAMERCY_HOME", str(own / "home"))
            freeze(patch, results, replay=k > 0)
            found.append(published_files(requested(own, **facts)))
    return found


@pytest.mark.parametrize("kept", [True, False, None], ids=["in the metric", "stopped", "by rule"])
@pytest.mark.parametrize(
    ("case", "neighbours"),
    [
        ("rows", "replace-one"),
        ("rows", "add-remove"),
        ("persons", "add-remove"),
        ("groups", "replace-one"),
        ("groups", "add-remove"),
    ],
)
def test_everything_follows_from_what_was_drawn(
    case: str,
    neighbours: str,
    kept: bool | None,
    tmp_path: Path,
    decide: Callable[[bool], None],
) -> None:
    """Decision, names of files, ids and every byte are the same for another table."""
    if kept is not None:
        decide(kept)
    other = correlated(seed=1) ** 3 * 1e3
    other.iloc[::7, 2] = np.inf
    other.iloc[::5, 1] = np.nan
    cells = np.random.default_rng(2).standard_t(1, size=(ROWS, P))
    independent = pd.DataFrame(cells, columns=list(other))
    if neighbours == "add-remove":
        independent = independent[:1234]
    tables = [of_people(each) for each in (with_holes(correlated()), other, independent)]
    first, *others = published(tmp_path, tables, **{"neighbours": neighbours} | CASES[case])
    assert first.keys() >= {"release/metric.npy", "release/missing_cells.npy"}
    assert "release/whitened.npy" in first or not kept
    assert others == [first, first]


def test_every_number_of_the_metric_is_published(
    tmp_path: Path, decide: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows are measured with the entries of `metric.npy`, to the last digit."""
    decide(True)
    correlated().to_csv(tmp_path / "table.csv", index=False)
    used, sum_rows = list[Any](), drawing.sum_rows
    monkeypatch.setattr(
        drawing, "sum_rows", lambda plan, *rest: used.append(plan.metric) or sum_rows(plan, *rest)
    )
    bundle = released(requested(tmp_path))
    assert bundle.whitening is not None
    assert (used[0].matrix == bundle.whitening.metric).all()
    assert (used[0].units == np.rint(used[0].units)).all()
    assert (bundle.whitening.pilot == bundle.whitening.pilot.T).all()


# --- Stated limits ------------------------------------------------------------------------------


def test_rows_far_out_do_not_stop_a_release(tmp_path: Path) -> None:
    """Bounds that are very far out leave the metric its digits."""
    table = correlated()
    table.loc[::100, "c1"] = 1e11
    table["constant"] = 4.0
    table["rare"] = np.where(np.arange(ROWS) % 150 == 0, -1e12, 1e-9)
    table.to_csv(tmp_path / "table.csv", index=False)
    wide = {"lower": -1e12, "upper": 1e12}
    columns: dict[str, Any] = {"c0": {}, "c1": wide, "c2": {}, "c3": wide}
    bundle = released(requested(tmp_path, columns=columns | {"constant": {}, "rare": wide}))
    assert bundle.whitening is not None
    values = np.linalg.eigvalsh(bundle.whitening.metric)
    assert values[0] > 1e-3 * values[-1] > 0
    assert math.isfinite(bundle.evidence.raw.sum())


def test_metric_with_too_many_digits_is_refused_before_a_later_charge(tmp_path: Path) -> None:
    correlated().to_csv(tmp_path / "table.csv", index=False)
    bundle = released(requested(tmp_path))
    assert ReleasedMetric.of(bundle) is not None
    assert bundle.whitening is not None
    forged = replace(bundle.whitening, metric=bundle.whitening.metric * (1 + 2.0**-40))
    with raises(families.SCALING, release="v1-r1"):
        ReleasedMetric.of(replace(bundle, whitening=forged))
