"""Groups: a matrix for every level of a column, for one charge, and estimates from them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy import estimators
from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release, release_descriptor
from gramercy.archive.bundles.number_files import GROUPS, GroupMatrices, write_groups
from gramercy.archive.bundles.package import write_descriptor
from gramercy.archive.seal.bundle import seal
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.estimators.tuning.stability import edge_frequencies
from gramercy.mechanisms import mechanism, registry
from gramercy.mechanisms.mechanism import COUNT_WEIGHT, squared_sensitivity
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.attachments import make_estimate, make_report
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.pipeline.verify.verification import verify_release
from gramercy.reports.estimate_summary import EstimateSummary
from gramercy.schemas import families
from gramercy.schemas.facts import OTHER
from gramercy.schemas.problem import Family
from tests.support.black_box.replay import claimed_share
from tests.support.factories import (
    as_flow_step,
    crossed,
    edit_json,
    read_plan,
    run_release,
    write_request,
)
from tests.support.problems import raises
from tests.support.survey import survey_request

pytestmark = pytest.mark.slow

BOTH = ("replace-one", "add-remove")
CLIP = {"kind": "clip", "radius": 1.0}
WARDS = ("A", "B")
COLUMNS: dict[str, Any] = {
    "x": {"lower": -1.0, "upper": 1.0},
    "ward": {"levels": list(WARDS)},
    "y": {"lower": -1.0, "upper": 1.0},
}
ROWS = 60
CLOSE = 1 + 1e-9


def table(rows: int = ROWS, seed: int = 3) -> pd.DataFrame:
    """Rows of wards A, B, an undeclared one, and none."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-1, 1, (rows, 2)).round(3), columns=["x", "y"])
    return frame.assign(ward=rng.choice(["A", "B", "C", ""], rows), who=rng.integers(0, 9, rows))


def plan_of_groups(folder: Path, frame: pd.DataFrame | None = None, **facts: Any) -> Plan:
    frame = table() if frame is None else frame
    frame.to_csv(folder / "table.csv", index=False)
    request = {"by": "ward", "normalisation": CLIP, "estimates": []} | facts.pop("request", {})
    defaults = {"columns": COLUMNS, "rows": len(frame), "intercept": True, "request": request}
    return read_plan(write_request(folder, **defaults | facts))


def exact_parts(plan: Plan) -> list[tuple[np.ndarray, int]]:
    """The exact Gram matrix and number of rows of every part."""
    return [(part.gram, part.rows) for part in as_flow_step(accumulate)(plan).sums.part_sums]


PERSONS = {"privacy_unit": "who", "persons": 9}


@pytest.mark.parametrize("facts", [{}, PERSONS])
def test_parts_are_the_sums_of_the_rows_of_each_level(tmp_path: Path, facts: Any) -> None:
    """A person has one factor for the rows of all groups: summed alone, a group would differ."""
    frame = table()
    plan = plan_of_groups(tmp_path, frame, **facts)
    assert plan.spec.names == ["(intercept)", "x", "y"]
    parts = exact_parts(plan)
    together = sum(gram for gram, _ in parts)
    whole = read_plan(
        write_request(
            tmp_path,
            columns={name: COLUMNS[name] for name in ("x", "y")},
            rows=ROWS,
            intercept=True,
            request={"normalisation": CLIP, "estimates": []},
            **facts,
        )
    )
    assert whole.mechanism.lattice == plan.mechanism.lattice
    ((gram, rows),) = exact_parts(whole)
    assert (together == gram).all()
    assert sum(count for _, count in parts) == rows
    if not facts:
        sizes = frame["ward"].value_counts()
        expected = [sizes["A"], sizes["B"], sizes["C"] + sizes[""]]
        assert [count for _, count in parts] == expected


def test_person_counts_in_one_group_and_weighs_one_in_all(tmp_path: Path) -> None:
    """Of a person with rows in every group, the trace over all groups is that of one person."""
    frame = pd.DataFrame({"x": 1.0, "y": 1.0, "ward": ["A", "B", "C"] * 20, "who": 1})
    plan = plan_of_groups(tmp_path, frame, privacy_unit="who", persons=1)
    parts, bound = exact_parts(plan), plan.mechanism.lattice.squared_radius
    assert sorted(count for _, count in parts) == [0, 0, 1]
    assert 0.9 * bound < sum(int(np.trace(gram)) for gram, _ in parts) <= bound
    assert all(np.trace(gram) > 0 for gram, _ in parts)


def test_integers_are_the_same_on_a_cluster(tmp_path: Path) -> None:
    import dask  # takes long, in every worker
    from distributed import LocalCluster

    frame = table(400)
    for part in range(4):
        frame[part::4].to_csv(tmp_path / f"part{part}.csv", index=False)
    facts = {"source": str(tmp_path / "part*.csv"), "persons": 9, "privacy_unit": "who"}
    with (
        dask.config.set({"distributed.worker.memory.target": False}),
        dask.config.set({"distributed.worker.memory.spill": False}),
        LocalCluster(n_workers=2, processes=False, dashboard_address=None) as cluster,
    ):
        engine = {"kind": "dask", "scheduler": cluster.scheduler_address}
        plans = [
            plan_of_groups(tmp_path, frame, request=keys, **facts)
            for keys in ({}, {"engine": engine})
        ]
        here, there = (exact_parts(plan) for plan in plans)
    assert all((a == b).all() for (a, _), (b, _) in zip(here, there, strict=True))
    assert sum(count for _, count in here) == sum(count for _, count in there) == 9


def text_of(rows: list[str]) -> str:
    return "x,y,ward\n" + "\n".join(["0,0,A", *rows, "0.5,0.5,B"]) + "\n"


MOVES = {
    "to another level": ("1,1,A", "-1,-1,B"),
    "to no level": ("1,-1,B", "1,-1,"),
    "to a line that is malformed": ("1,1,A", '"open,1,A'),
    "within a level": ("1,1,A", "1,-1,A"),
}


@pytest.mark.parametrize("move", MOVES)
@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("folds", [1, 2])
def test_changed_row_moves_the_parts_within_the_claim(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folds: int, neighbours: str, move: str
) -> None:
    plan = plan_of_groups(
        tmp_path, pd.DataFrame(), rows=3, neighbours=neighbours, request={"folds": folds}
    )
    monkeypatch.setattr(
        "gramercy.mechanisms.sampling.sampler.uniform_integers",
        lambda count, size: np.zeros(size, np.int64),
    )
    first, second = MOVES[move]
    removed = neighbours == "add-remove"
    texts = text_of([first]), text_of([] if removed else [second])
    share = claimed_share(plan, tmp_path, *texts)
    assert share <= CLOSE
    assert move == "within a level" or share > 0.7


@pytest.mark.parametrize("normalisation", ["unit", CLIP])
def test_single_column_moves_by_two(tmp_path: Path, normalisation: Any) -> None:
    """Without groups, a matrix of one column has half of this squared sensitivity."""
    columns = {name: COLUMNS[name] for name in ("x", "ward")}
    plan = plan_of_groups(
        tmp_path,
        pd.DataFrame(),
        rows=3,
        columns=columns,
        intercept=False,
        request={"normalisation": normalisation},
    )
    of_counts = 0.0 if normalisation == "unit" else 2 * COUNT_WEIGHT**2
    assert squared_sensitivity(plan.mechanism.parameters) == 2 + of_counts
    share = claimed_share(plan, tmp_path, text_of(["1,1,A"]), text_of(["1,1,B"]))
    assert 0.99 < share <= CLOSE


@pytest.mark.parametrize("neighbours", BOTH)
@pytest.mark.parametrize("grouped", [False, True])
def test_sensitivity_is_attained_by_extreme_rows(neighbours: Any, grouped: bool) -> None:
    parameters = mechanism.PublicParameters(
        4, 100, neighbours, publishes_noisy_count=grouped, grouped=grouped
    )
    base = 2.0 if neighbours == "replace-one" else 1.0
    counts = base * COUNT_WEIGHT**2 if grouped else 0.0
    assert squared_sensitivity(parameters) == base + counts
    made = registry["gaussian"].calibrated(
        p=4, n=100, neighbours=neighbours, mu=0.5, delta=1e-6, publishes_noisy_count=grouped
    )
    assert made.guarantee.mu <= 0.5


def published(folder: Path, **facts: Any) -> tuple[Path, ReleaseBundle]:
    frame = table() if (frame := facts.pop("frame", None)) is None else frame
    plan_of_groups(folder, frame, **facts)
    name = run_release(folder / "request.yaml")
    place = open_archive(Home.default().archive).release("toy", name)
    return place, read_release(place)


def verify(place: Path) -> Any:
    return verify_release(open_archive(Home.default().archive), "toy", place.parent.name, None)


@pytest.mark.parametrize("folds", [1, 3])
@pytest.mark.parametrize(("normalisation", "neighbours"), crossed(["unit", CLIP], BOTH))
def test_release_of_groups(tmp_path: Path, neighbours: str, normalisation: Any, folds: int) -> None:
    keys = {"normalisation": normalisation, "folds": folds}
    place, bundle = published(tmp_path, neighbours=neighbours, request=keys)
    facts = bundle.manifest
    assert [group.level for group in bundle.groups] == ["A", "B", OTHER]
    assert {group.rows.status for group in facts.groups} == {"noisy"}
    assert facts.rows.status == ("public" if neighbours == "replace-one" else "noisy")
    total = sum(
        group.raw * own.rows.value for group, own in zip(bundle.groups, facts.groups, strict=True)
    )
    np.testing.assert_allclose(total / facts.rows.value, bundle.raw, rtol=1e-9)
    for index, own in enumerate(facts.groups):
        evidence = bundle.evidence.groups[index][1]
        assert evidence.rows == own.rows.value
        assert len(evidence.folds) == (folds if folds > 1 else 0)
        assert evidence.divisor == ("itself" if normalisation == "unit" else "noisy")
        spread = evidence.law.sd_diagonal * own.rows.value * math.sqrt(3)
        pooled = facts.noise.sd_diagonal * facts.rows.value
        assert spread == pytest.approx(pooled)
    assert facts.guarantee.epsilon == pytest.approx(1.0)
    assert "ward" in facts.card["groups"]
    assert not verify(place).unchecked


def test_each_group_has_the_noise_of_one_release(tmp_path: Path) -> None:
    """The rows are zero, so only noise is published. An error of 30 % would be detected."""
    p = 60
    columns = {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(p)}
    frame = pd.DataFrame(np.zeros((20, p)), columns=list(columns)).assign(ward=["A", "B"] * 10)
    columns["ward"] = COLUMNS["ward"]
    _, bundle = published(tmp_path, frame=frame, columns=columns, intercept=False)
    single = read_plan(tmp_path / "request.yaml").mechanism.law
    above = np.triu_indices(p, 1)
    noise = np.array(
        [
            group.raw[above] * own.rows.value
            for group, own in zip(bundle.groups, bundle.manifest.groups, strict=True)
        ]
    )
    ratios = noise.std(axis=1) / single.sd_off_diagonal
    assert np.abs(ratios - 1).max() < 6 / math.sqrt(2 * noise.shape[1])
    assert np.abs(np.corrcoef(noise)[np.triu_indices(3, 1)]).max() < 6 / math.sqrt(noise.shape[1])
    observed = [
        own.rows.observed - n for own, n in zip(bundle.manifest.groups, (10, 10, 0), strict=True)
    ]
    assert max(map(abs, observed)) < 7 * bundle.manifest.groups[0].rows.sd


def test_private_constants_of_groups(tmp_path: Path) -> None:
    """Histograms, and so constants and radius, are of all rows; groups share the charge."""
    rng = np.random.default_rng(2)
    ward = rng.choice(["A", "B"], 20_000)
    x = 3 * rng.normal(size=20_000) + np.where(ward == "A", 100, 106)
    frame = pd.DataFrame({"x": x, "y": rng.normal(size=20_000) - 5, "ward": ward})
    columns = {"x": {}, "y": {}, "ward": COLUMNS["ward"]}
    keys = {
        "scaling": "private",
        "mechanism": {"name": "gaussian", "epsilon": 8.0, "delta": 1e-6},
        "normalisation": {"kind": "clip"},
    }
    budget = {"epsilon": 50.0, "delta": 1e-5}
    place, bundle = published(tmp_path, frame=frame, columns=columns, budget=budget, request=keys)
    assert verify(place).checks
    assert [column.name for column in bundle.manifest.columns] == ["x", "y"]
    means = []
    for index in range(2):
        evidence = bundle.evidence.groups[index][1]
        column: Any = evidence.columns[1]
        means.append(column.centre + column.scale * evidence.raw[0, 1] / evidence.raw[0, 0])
    assert means == pytest.approx([100.0, 106.0], abs=0.5)
    assert not bundle.evidence.groups[0][1].marginals


def write_and_seal(place: Path, bundle: ReleaseBundle, groups: Sequence[GroupMatrices]) -> None:
    """Replace the groups of a release."""
    for path in place.iterdir():
        path.chmod(0o644)
    write_groups(place, bundle.manifest, groups)
    write_descriptor(place, release_descriptor(place, bundle.manifest))
    seal(place)


UNITS = 1 << 16  # of the lattice


@pytest.mark.parametrize("units", [(UNITS, 0), (UNITS, -UNITS), (0.5, -0.5)])
def test_forged_groups_fail_verification(tmp_path: Path, units: tuple[float, float]) -> None:
    """Even if their sum is unchanged."""
    place, bundle = published(tmp_path)
    lattice, groups = read_plan(tmp_path / "request.yaml").mechanism.lattice, list(bundle.groups)
    for k, amount in enumerate(units):
        rows = bundle.manifest.groups[k].rows.value
        raw = groups[k].raw + amount / lattice.divisor / rows * np.eye(3)
        groups[k] = GroupMatrices(groups[k].level, raw, groups[k].denoised)
    write_and_seal(place, bundle, groups)
    with raises(families.CONTRADICTION):
        verify(place)


def test_file_of_other_groups_is_not_read(tmp_path: Path) -> None:
    place, bundle = published(tmp_path)
    renamed = [GroupMatrices("C", each.raw, each.denoised) for each in bundle.groups]
    huge = [GroupMatrices(x.level, np.full_like(x.raw, 1e300), x.denoised) for x in bundle.groups]
    for groups in (renamed, huge, bundle.groups[:2], [*bundle.groups, bundle.groups[0]]):
        write_and_seal(place, bundle, groups)
        with raises(families.CONTENT):
            read_release(place)
    (place / GROUPS).chmod(0o644)
    (place / GROUPS).write_bytes(b"PAR1")
    seal(place)
    with raises(families.CONTENT):
        read_release(place)


def test_file_of_too_many_entries_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest of a hostile archive may state any number of groups."""
    place, _ = published(tmp_path)
    monkeypatch.setattr("gramercy.archive.bundles.number_files.MAX_ENTRIES", 13)  # 27 entries
    with raises(families.CONTENT):
        read_release(place)


def test_malformed_lines_are_counted_once(tmp_path: Path) -> None:
    """Also where persons are protected, and the lines stay in the table as rows without cells."""
    plan = plan_of_groups(tmp_path, privacy_unit="who", persons=9, rows=ROWS)
    path = Path(plan.contract.source)
    path.write_text(path.read_text() + '"open,1\n1,2\n')
    sums = as_flow_step(accumulate)(plan).sums
    assert (sums.rows_read, sums.malformed) == (ROWS + 2, 2)


@pytest.mark.parametrize(
    "change",
    [
        lambda dp: dp["groups"].pop(),
        lambda dp: dp["groups"][0].update(level="Z"),
        lambda dp: dp["groups"][0].update(fold_rows=[dp["groups"][0]["rows"]]),
    ],
)
def test_manifest_with_other_groups_is_not_read(tmp_path: Path, change: Any) -> None:
    place, _ = published(tmp_path)
    edit_json(place / "datapackage.json", lambda facts: change(facts["dp"]))
    seal(place)
    with raises(families.INCOMPLETE_FACTS):
        read_release(place)


@pytest.mark.parametrize(
    "facts",
    [
        {"request": {"by": "wards"}},
        {"request": {"by": "x"}},
        {"columns": {"ward": COLUMNS["ward"]}},
        {"request": {"mechanism": {"name": "laplace", "epsilon": 1.0}}},
        {"columns": COLUMNS | {"ward": {"levels": ["A", OTHER]}}},
        {
            "columns": COLUMNS
            | {"ward": {"levels": [f"w{k}" for k in range(1000)]}}
            | {f"c{k}": {"lower": 0.0, "upper": 1.0} for k in range(300)}
        },
    ],
)
def test_requests_incompatible_with_groups_are_refused(tmp_path: Path, facts: Any) -> None:
    with raises(families.GROUPS):
        plan_of_groups(tmp_path, **facts)


def test_grouping_is_part_of_the_request_key(tmp_path: Path) -> None:
    grouped = plan_of_groups(tmp_path)
    alone = plan_of_groups(tmp_path, request={"by": None})
    assert grouped.key != alone.key
    assert grouped.law.sd_diagonal > alone.law.sd_diagonal * math.sqrt(3)


LASSO = {"name": "graphical-lasso", "penalty": 0.003}


def survey_by_ward(folder: Path) -> ReleaseBundle:
    name = run_release(survey_request(folder, epsilon=16.0, rows=2000, by="ward"))
    return read_release(Context.default().archive.release("toy", name))


@pytest.mark.slow
def test_estimates_of_a_group_are_sealed_verified_and_reported(tmp_path: Path) -> None:
    bundle, context = survey_by_ward(tmp_path), Context.default()
    release, archive = bundle.manifest.release, context.archive
    settings: list[dict[str, Any]] = [
        LASSO | {"group": "A"},
        LASSO,
        {"name": "moments", "group": "B"},
        {"name": "pca", "group": "A"},
        {"name": "regression", "formula": "income ~ hours", "group": "A"},
        {"name": "tables", "group": "A"},
        {"name": "synthetic", "group": "C", "rows": 50},
    ]
    specs = [estimators.registry[each["name"]].model_validate(each) for each in settings]
    made = [make_estimate(context, "toy", release, spec) for spec in specs]
    of_group, of_all = made[:2]
    again = specs[0].fit(dict(bundle.evidence.groups)["A"])
    np.testing.assert_allclose(of_group.matrices["precision"], again.matrix, rtol=1e-9)
    assert np.abs(of_group.matrices["precision"] - of_all.matrices["precision"]).max() > 0.1

    # Edges are redrawn with the rows and the noise of the group.
    drawn = edge_frequencies(bundle.rows_of("A").evidence, specs[0], of_group.manifest.tuning)
    np.testing.assert_array_equal(of_group.matrices["stability"], drawn)
    rate = round(100 * EstimateSummary.of(of_group).new_edge_rate, 1)
    page = make_report(context, "toy", release, [each.manifest.estimate for each in made]).page
    _, _, part = page.partition("<h3>graphical-lasso: group A, penalty 0.003</h3>")
    assert f"one in {rate} %" in part.partition("<h3>")[0]
    assert "<h3>graphical-lasso: penalty 0.003</h3>" in page
    assert page.count("(group A)</h3>") == 3
    assert page.count("(group B)</h3>") == page.count("(group C)</h3>") == 1
    result = verify_release(archive, "toy", release, None)
    assert len([check for check in result.checks if check.startswith("estimate")]) == len(made)
    assert not result.unchecked
    with raises(families.UNKNOWN_NAME, group="D"):
        bundle.rows_of("D")


@pytest.mark.parametrize(
    ("estimate", "request_keys", "facts", "problem"),
    [
        ({"name": "ridge", "group": "C"}, {}, {}, families.UNKNOWN_NAME),
        ({"name": "ridge", "group": "A"}, {"by": None}, {}, families.UNKNOWN_NAME),
        ({"name": "quadratic-discriminant"}, {"by": None}, {}, families.ESTIMATE),
        ({"name": "quadratic-discriminant", "group": "A"}, {}, {}, families.ESTIMATE),
        ({"name": "joint-graphical-lasso"}, {"by": None}, {}, families.ESTIMATE),
        ({"name": "joint-graphical-lasso", "group": "A"}, {}, {}, families.ESTIMATE),
        ({"name": "quadratic-discriminant"}, {}, {"intercept": False}, families.ANALYSIS),
        ({"name": "quadratic-discriminant"}, {"normalisation": "unit"}, {}, families.ANALYSIS),
    ],
)
def test_impossible_estimates_are_refused_before_a_charge(
    tmp_path: Path,
    estimate: dict[str, Any],
    request_keys: dict[str, Any],
    facts: dict[str, Any],
    problem: Family[Any],
) -> None:
    with raises(problem):
        plan_of_groups(tmp_path, request={"estimates": [estimate]} | request_keys, **facts)


def test_estimate_of_an_unknown_group_makes_no_folder(tmp_path: Path) -> None:
    plan_of_groups(tmp_path, request={"normalisation": CLIP})
    context, release = Context.default(), run_release(tmp_path / "request.yaml")
    spec = estimators.registry["ridge"].model_validate({"name": "ridge", "group": "Z"})
    with raises(families.UNKNOWN_NAME, group="Z", known=("A", "B", "(other)")):
        make_estimate(context, "toy", release, spec)
    assert not list(context.archive.estimates("toy", release))
