"""Folds: disjoint parts of the rows with independent noise, and when they are proposed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from gramercy.archive.bundles.bundle_kinds import (
    ReleaseBundle,
    read_release,
    release_descriptor,
    stems,
)
from gramercy.archive.bundles.number_files import write_matrix
from gramercy.archive.bundles.package import write_descriptor
from gramercy.archive.seal.bundle import seal
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.estimators.graphical_lasso import GraphicalLasso
from gramercy.estimators.ridge import Ridge
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import FOLDS, folds_of_draft, proposed_folds
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.attachments import make_estimate
from gramercy.pipeline.publish.drawing import rows_facts, total_rows
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.errors import BundleError
from gramercy.schemas.problem import Family
from tests.acceptance.test_03_planted_flaws import CHANGES, CLOSE, ROWS, csv_text
from tests.support.black_box.replay import record_run
from tests.support.factories import (
    RoundRobin,
    as_flow_step,
    edit_json,
    read_plan,
    run_release,
    write_request,
    write_table,
)
from tests.support.problems import raises

BOTH = ("replace-one", "add-remove")


def plan_with_folds(folder: Path, neighbours: str, name: str = "gaussian", **facts: Any) -> Plan:
    mechanism = {"name": name, "epsilon": 1.0, "delta": 1e-6}
    request = {"mechanism": mechanism, "folds": 3, "estimates": []} | facts.pop("request", {})
    return read_plan(
        write_request(folder, rows=ROWS, neighbours=neighbours, request=request, **facts)
    )


def fixed_assignment(parts: list[int]) -> Any:
    """Make the random assignment of rows return these folds."""
    left: Iterator[int] = iter(parts)
    return lambda count, size: np.array([next(left) for _ in range(size)])


def fold_changes(plan: Plan, folder: Path, pairs: list[tuple[str, list[int]]]) -> list[float]:
    """The change of each fold's matrix before noise, relative to the claimed sensitivity."""
    runs = []
    for text, parts in pairs:
        Path(plan.contract.source).write_text(text)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sampler, "uniform_integers", fixed_assignment(parts))
            runs.append(record_run(plan, folder))
    first, second_run = runs
    assert first.requests == second_run.requests
    change = np.linalg.norm(first.published - second_run.published, axis=(1, 2))
    mechanism: Any = plan.mechanism
    shares = change / (mechanism.scale * mechanism.lattice.squared_radius) / mechanism.guarantee.mu
    return [float(share) for share in shares]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("name", ["gaussian", "gaussian-iid"])
def test_one_row_changes_one_fold_within_the_sensitivity(
    tmp_path: Path, name: str, neighbours: str, change: str
) -> None:
    """The sensitivity is that of a release without folds."""
    plan = plan_with_folds(tmp_path, neighbours, name)
    first, second = CHANGES[change]
    parts = [k * k % 3 for k in range(ROWS)]
    pair = [(csv_text(first), parts), (csv_text(second), parts)]
    if neighbours == "add-remove":  # remove the fifth row, which is the one that changes
        pair[1] = (csv_text(None), parts[:4] + parts[5:])
    shares = fold_changes(plan, tmp_path, pair)
    assert sum(share > 0 for share in shares) <= 1
    assert max(shares) <= CLOSE
    assert change != "orthogonal" or max(shares) > 0.7


def test_folds_by_row_order_are_unsafe_under_add_remove(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Removing a row would move all later rows to other folds; so folds are random."""
    plan = plan_with_folds(tmp_path, "add-remove")
    monkeypatch.setattr(
        "gramercy.pipeline.publish.private_table._assign", lambda plan: RoundRobin(3)
    )
    shares = fold_changes(plan, tmp_path, [(csv_text("5,0,0"), []), (csv_text(None), [])])
    assert sum(share > 0 for share in shares) == 3


@pytest.mark.parametrize("neighbours", BOTH)
def test_sampler_assigns_every_row_to_a_fold(tmp_path: Path, neighbours: str) -> None:
    """A malformed line is assigned like any other."""
    plan = plan_with_folds(tmp_path, neighbours)
    Path(plan.contract.source).write_text(csv_text('"open,1,2'))
    calls = []

    def assign_all_to_second(count: int, size: int) -> Any:
        calls.append((count, size))
        return np.ones(size, dtype=np.int64)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampler, "uniform_integers", assign_all_to_second)
        sums = as_flow_step(accumulate)(plan).sums
    assert {n for n, _ in calls} == {3}
    assert sum(size for _, size in calls) == ROWS
    assert [part.rows for part in sums.part_sums] == [0, ROWS, 0]
    assert sums.malformed == 1


def test_fold_assignment_is_uniform() -> None:
    """Consecutive pairs are uniform, too. Fails by chance once in 1e8 runs."""

    def is_uniform() -> bool:
        drawn = sampler.uniform_integers(7, 140_000)
        pairs = np.bincount(7 * drawn[::2] + drawn[1::2], minlength=49)
        assert drawn.min() == 0
        assert drawn.max() == 6
        return float(stats.chisquare(pairs).pvalue) > 1e-4

    assert is_uniform() or is_uniform()
    assert sampler.uniform_integers(1, 5).tolist() == [0] * 5
    with raises(families.ARGUMENT, argument="count"):
        sampler.uniform_integers(0, 5)


def publish_folds(folder: Path, **facts: Any) -> tuple[Path, ReleaseBundle]:
    request = {"mechanism": {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}, "folds": 4}
    name = run_release(write_request(folder, request=request | facts.pop("request", {}), **facts))
    place = open_archive(Home.default().archive).release("toy", name)
    return place, read_release(place)


@pytest.mark.slow
@pytest.mark.parametrize("normalisation", ["unit", {"kind": "clip", "radius": 2.0}])
@pytest.mark.parametrize("neighbours", BOTH)
def test_release_with_folds(tmp_path: Path, neighbours: str, normalisation: Any) -> None:
    write_table(tmp_path / "table.csv", rows=41)
    place, bundle = publish_folds(
        tmp_path, neighbours=neighbours, rows=41, request={"normalisation": normalisation}
    )
    facts = bundle.manifest
    assert len(bundle.folds) == len(bundle.evidence.folds) == 4
    assert sum(part.observed for part in facts.fold_rows) == pytest.approx(facts.rows.observed)
    if neighbours == "replace-one":
        assert {part.status for part in facts.fold_rows} == {"public"}
        assert sum(part.observed for part in facts.fold_rows) == 41
    together = sum(fold.moment * fold.rows for fold in bundle.evidence.folds) / facts.rows.value
    np.testing.assert_allclose(together, bundle.raw, rtol=1e-12)
    assert facts.guarantee.epsilon == pytest.approx(1.0)
    assert "parallel composition" in facts.card["folds"]
    checked = verify_release(open_archive(Home.default().archive), "toy", place.parent.name, None)
    assert not checked.unchecked


@pytest.mark.slow
def test_each_fold_has_the_noise_of_one_release(tmp_path: Path) -> None:
    """The rows are zero, so only noise is published. An error of 30 % would be detected."""
    p = 60
    header = ",".join(f"c{i}" for i in range(p))
    (tmp_path / "table.csv").write_text(header + "\n" + ("," * (p - 1) + "\n") * 40)
    columns = {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(p)}
    _, bundle = publish_folds(tmp_path, columns=columns)
    single = read_plan(tmp_path / "request.yaml").mechanism.law
    above = np.triu_indices(p, 1)
    folds = np.array([fold.moment[above] * fold.rows for fold in bundle.evidence.folds])
    ratios = folds.std(axis=1) / single.sd_off_diagonal
    assert np.abs(ratios - 1).max() < 6 / math.sqrt(2 * folds.shape[1])
    assert np.abs(np.corrcoef(folds)[np.triu_indices(4, 1)]).max() < 6 / math.sqrt(folds.shape[1])
    spread = bundle.raw[above].std() / bundle.manifest.noise.sd_off_diagonal
    assert abs(spread - 1) < 6 / math.sqrt(2 * folds.shape[1])
    assert bundle.manifest.noise.sd_off_diagonal == pytest.approx(2 * single.sd_off_diagonal / 40)


@pytest.mark.slow
def test_cross_validated_estimates_are_verified(tmp_path: Path) -> None:
    """They are computed from the release alone, sealed, and verified."""
    place, _ = publish_folds(tmp_path)
    archive, name = open_archive(Home.default().archive), place.parent.name
    for each in (
        Ridge(penalty="cross-validation"),
        GraphicalLasso(penalty="cross-validation", refit=True),
    ):
        made = make_estimate(Context.default(), "toy", name, each)
        assert made.manifest.tuning["penalty"] in made.tables["tuning"]["penalty"].to_numpy()
    result = verify_release(archive, "toy", name, None)
    assert len([check for check in result.checks if check.startswith("estimate")]) == 2


@pytest.mark.slow
def test_noisy_row_total_of_folds_is_unbiased(tmp_path: Path) -> None:
    """Noisy fold counts may be negative; their total is unbiased."""
    plan = plan_with_folds(tmp_path, "add-remove", request={"folds": 10})
    mechanism = plan.mechanism
    counts = np.random.default_rng(1).normal(1.0, 30.0, size=(4000, 10))
    totals = [total_rows(rows_facts(plan.spec, mechanism, list(each))).observed for each in counts]
    assert abs(np.mean(totals) - 10) < 6 * 30 * math.sqrt(10 / 4000)
    with pytest.raises(ValueError):  # noqa: PT011 - without text; verification reports it
        rows_facts(plan.spec, mechanism, [1.0])


def refusal_code(place: Path) -> str:
    with pytest.raises(BundleError) as refused:
        verify_release(open_archive(Home.default().archive), "toy", place.parent.name, None)
    return refused.value.code


@pytest.mark.slow
@pytest.mark.parametrize("change", [(10, 0), (1e6, -1e6)])
def test_forged_folds_fail_verification(tmp_path: Path, change: tuple[float, float]) -> None:
    """Even if the sum of the folds is unchanged."""
    place, bundle = publish_folds(tmp_path)
    for path in place.iterdir():
        path.chmod(0o644)
    for k, amount in enumerate(change):
        forged = bundle.folds[k] + amount / bundle.manifest.fold_rows[k].value * np.eye(3)
        write_matrix(place, stems(bundle.manifest)[k - 4], forged, bundle.manifest.names)
    write_descriptor(place, release_descriptor(place, bundle.manifest))
    seal(place)
    assert refusal_code(place) == families.CONTRADICTION.code


@pytest.mark.slow
@pytest.mark.parametrize("folds", [1, 2, 5, 19, 500])
def test_changed_number_of_folds_fails_verification(tmp_path: Path, folds: int) -> None:
    place, _ = publish_folds(tmp_path, neighbours="add-remove")
    edit_json(place / "datapackage.json", lambda facts: facts["dp"].update(folds=folds))
    seal(place)
    assert refusal_code(place)


@pytest.mark.slow
@pytest.mark.parametrize("kept", [1, 3])
def test_omitted_folds_fail_verification(tmp_path: Path, kept: int) -> None:
    place, _ = publish_folds(tmp_path, neighbours="add-remove")

    def truncate(facts: Any) -> None:
        facts["dp"]["fold_rows"] = facts["dp"]["fold_rows"][:kept]

    edit_json(place / "datapackage.json", truncate)
    seal(place)
    assert refusal_code(place)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(11, 10, 10, 10), (41, 1, -1, 0), (10.5, 10.5, 10, 10), (41,)])
def test_inconsistent_fold_sizes_fail_verification(
    tmp_path: Path, sizes: tuple[float, ...]
) -> None:
    """Fold sizes are random; they are public if the number of rows is public."""
    write_table(tmp_path / "table.csv", rows=41)
    place, _ = publish_folds(tmp_path, rows=41)
    forged = [
        {"value": max(1.0, size), "observed": float(size), "status": "public", "sd": 0.0}
        for size in sizes
    ]
    edit_json(place / "datapackage.json", lambda facts: facts["dp"].update(fold_rows=forged))
    seal(place)
    assert refusal_code(place)


@pytest.mark.parametrize(
    "estimate", [{"name": "ridge", "penalty": "cross-validation"}, {"name": "discriminant"}]
)
def test_impossible_estimate_is_refused_when_planned(tmp_path: Path, estimate: Any) -> None:
    with raises(families.ESTIMATE) as caught:
        plan_with_folds(tmp_path, "replace-one", request={"folds": 1, "estimates": [estimate]})
    assert caught.value.sentence.startswith("estimates.0: ")


def test_number_of_folds_is_part_of_the_request_key(tmp_path: Path) -> None:
    plans = [
        plan_with_folds(tmp_path, "replace-one", request={"folds": folds}) for folds in (1, 2, 3)
    ]
    assert len({plan.key for plan in plans}) == 3
    assert plans[0].guarantee == plans[2].guarantee
    assert plans[2].law.sd_diagonal == pytest.approx(math.sqrt(3) * plans[0].law.sd_diagonal)


@pytest.mark.parametrize(
    ("request_keys", "problem"),
    [
        ({"mechanism": {"name": "laplace", "epsilon": 1.0}}, families.REQUEST_USE),
        (
            {"mechanism": {"name": "rows", "epsilon": 1.0, "delta": 1e-6}},
            families.REQUEST_USE,
        ),
        ({"folds": ROWS + 1}, families.REQUEST_USE),
        ({"folds": 0}, families.VALUE),
        ({"folds": "3"}, families.VALUE),
    ],
)
def test_requests_incompatible_with_folds_are_refused(
    tmp_path: Path, request_keys: Any, problem: Family[Any]
) -> None:
    with raises(problem):
        plan_with_folds(tmp_path, "replace-one", request={"folds": 3} | request_keys)


def proposal(folder: Path, rows: int, **keys: Any) -> int:
    mechanism = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-9}
    facts = {"rows": rows, "budget": {"epsilon": 3.0, "delta": 1e-8}} | keys.pop("facts", {})
    request = {"mechanism": mechanism, "estimates": []} | keys
    plan = read_plan(write_request(folder, request=request, **facts))
    return proposed_folds(plan.spec, plan.calibration)


@pytest.mark.parametrize(
    "keys",
    [{}, {"scaling": "private"}, {"normalisation": {"kind": "clip", "radius": 2.0}}],
    ids=["unit", "private", "clip"],
)
def test_large_tables_get_folds(tmp_path: Path, keys: dict[str, Any]) -> None:
    rows = 20_000_000 if keys.get("scaling") == "private" else 1_000_000
    assert proposal(tmp_path, rows, **keys) == FOLDS
    assert proposal(tmp_path, 2_000, **keys) == 1


def test_no_folds_for_persons_other_noise_or_stated_folds(tmp_path: Path) -> None:
    assert proposal(tmp_path, 1_000_000, folds=4) == 4
    laplace = {"name": "laplace", "epsilon": 1.0}
    assert proposal(tmp_path, 1_000_000, mechanism=laplace) == 1
    persons = {"privacy_unit": "who", "persons": 500_000}
    assert proposal(tmp_path, 1_000_000, facts=persons) == 1


def test_drafts_agree_with_plans(tmp_path: Path) -> None:
    for rows in (10_000, 1_000_000, 20_000_000):
        drafted = folds_of_draft(rows, 3, 1.0, 1e-9)
        with_intercept = {"intercept": True}
        assert proposal(tmp_path, rows, scaling="private", facts=with_intercept) == drafted
