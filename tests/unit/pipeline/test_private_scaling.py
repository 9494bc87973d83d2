"""Private constants: histograms, constants and matrix under one charge."""

from __future__ import annotations

import shutil
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import (
    ReleaseBundle,
    read_release,
    release_descriptor,
)
from gramercy.archive.bundles.number_files import MARGINALS
from gramercy.archive.bundles.package import write_descriptor
from gramercy.archive.seal.bundle import seal
from gramercy.mechanisms.gaussian import target_mu
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import rows_needed
from gramercy.pipeline.publish import private_table
from gramercy.pipeline.publish.charging import publish
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.pipeline.verify.verification import verify_release
from gramercy.scaling.column_constants import WINSOR
from gramercy.schemas import families
from gramercy.schemas.errors import BundleError, RequestError
from gramercy.schemas.evidence import ROW_LENGTHS, TURNED_LENGTHS
from gramercy.schemas.facts import ColumnFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.normalisation import Clip, Unit
from gramercy.tables.batches import KeptCells
from gramercy.tables.formats.csv_format import CsvTables
from tests.support.factories import (
    home_at,
    read_plan,
    run_command,
    run_json,
    run_release,
    write_request,
)
from tests.support.problems import raises

pytestmark = pytest.mark.slow

ROWS = 20_000
SCALE, CENTRE = 3.0, 120.0
COLUMNS: dict[str, Any] = {
    "weight": {"lower": 0.0, "upper": 1e4},
    "income": {},
    "gaps": {"lower": -100.0, "upper": 100.0},
    "kind": {"levels": ["x", "y"]},
}
EPSILON, DELTA = 4.0, 1e-6
MECHANISM = {"name": "gaussian", "epsilon": EPSILON, "delta": DELTA}
BUDGET = {"epsilon": 50.0, "delta": 1e-5}


@cache
def table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    first, second, third = rng.normal(size=(3, ROWS))
    gaps = np.where(rng.random(ROWS) < 0.3, np.nan, 5 * third)
    return pd.DataFrame(
        {
            "weight": CENTRE + SCALE * first,
            "income": np.exp(8 + 0.5 * (0.6 * first + 0.8 * second)),
            "gaps": gaps,
            "kind": np.where(third > 0, "x", "y"),
            "person": [f"p{k // 4}" for k in range(ROWS)],
        }
    )


ONE_STAGE = {"kind": "private", "stages": 1}


@cache
def table_text() -> str:
    return table().to_csv(index=False)


def private_request(folder: Path, mechanism: dict[str, Any] | None = None, **changes: Any) -> Path:
    """A request with private scaling for the table above; `request` in `changes` adds keys."""
    if not (folder / "table.csv").exists():
        (folder / "table.csv").write_text(table_text())
    keys = {"mechanism": mechanism or MECHANISM, "scaling": "private", "estimates": []}
    keys |= changes.pop("request", {})
    facts = {"rows": ROWS, "columns": COLUMNS, "budget": BUDGET, "intercept": True} | changes
    return write_request(folder, request=keys, **facts)


def released(release: str) -> ReleaseBundle:
    return read_release(Context.default().archive.release("toy", release))


def column(bundle: ReleaseBundle, name: str) -> ColumnFacts:
    (facts,) = (each for each in bundle.manifest.columns if each.name == name)
    assert isinstance(facts, ColumnFacts)
    return facts


def verified(release: str) -> tuple[str, ...]:
    context = Context.default()
    result = verify_release(context.archive, "toy", release, context.existing_ledger)
    assert not result.unchecked
    return result.checks


@pytest.fixture(scope="module")
def private_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the release of `private_request`, which tests copy."""
    folder = tmp_path_factory.mktemp("private")
    with home_at(folder / "home") as home:
        run_release(private_request(folder))
    return home


@pytest.fixture
def release(private_home: Path, home: Path) -> str:
    """The name of this release, in the home of the test."""
    shutil.copytree(private_home, home)
    return "v1-r1"


PERSONS = {"privacy_unit": "person", "persons": ROWS // 4}


@pytest.mark.parametrize("neighbours", ["replace-one", "add-remove"])
@pytest.mark.parametrize("unit", [{}, PERSONS], ids=["rows", "persons"])
def test_constants_are_those_of_the_table(
    tmp_path: Path, neighbours: str, unit: dict[str, Any]
) -> None:
    # A quarter as many persons as rows have four times the noise, relative to their number.
    epsilon = 4 * EPSILON if unit else EPSILON
    mechanism = MECHANISM | {"epsilon": epsilon}
    request = private_request(tmp_path, mechanism, neighbours=neighbours, **unit)
    bundle = released(run_release(request))
    facts = bundle.manifest
    weight, income = column(bundle, "weight"), column(bundle, "income")
    # The scale of a column of other than its histogram's tails may be larger than its deviation.
    assert CENTRE - SCALE < weight.centre < CENTRE + SCALE
    assert 0.7 * SCALE < weight.scale < 2.5 * SCALE
    assert 0 < income.centre < 8000
    assert income.scale < 8000
    reach = weight.upper - weight.centre
    assert WINSOR / 2 <= reach / weight.scale <= 2 * WINSOR
    assert weight.lower == pytest.approx(max(0.0, weight.centre - reach))
    assert facts.scaling.present is not None
    assert facts.scaling.present == pytest.approx((1, 1, 0.7, 1), abs=0.08)
    assert isinstance(facts.normalisation, Clip)
    assert facts.normalisation.length > 1
    assert facts.guarantee.epsilon == pytest.approx(epsilon, rel=1e-6)
    assert facts.guarantee.epsilon <= epsilon
    assert "constants: recomputed from the published histograms" in verified(facts.release)


def test_one_charge_of_one_mu(tmp_path: Path, release: str) -> None:
    plan = read_plan(private_request(tmp_path))
    noise = plan.calibration.constants_noise
    assert noise is not None
    assert plan.calibration.lost is not None
    assert plan.calibration.pilot is not None
    matrices = (plan.mechanism, plan.calibration.pilot, plan.calibration.lost)
    mus = [*(each.mu for each in noise.draws), *(each.guarantee.mu for each in matrices)]
    assert np.hypot.reduce(mus) == pytest.approx(plan.guarantee.mu, rel=1e-12)
    assert plan.guarantee.mu <= target_mu(plan.request.mechanism)
    (charge,) = Context.default().ledger.charges("toy")
    assert charge.release == release
    assert charge.guarantee.mu == plan.guarantee.mu


@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "laplace", "epsilon": EPSILON, "delta": DELTA},
        {"name": "k-norm", "epsilon": EPSILON, "delta": DELTA, "arithmetic": "floating-point"},
        {"name": "wishart", "epsilon": EPSILON, "delta": DELTA, "arithmetic": "floating-point"},
        {"name": "gaussian-iid", "mu": 0.5, "delta": DELTA},
    ],
    ids=lambda each: str(each["name"]),
)
def test_every_matrix_mechanism_shares_the_guarantee(
    tmp_path: Path, mechanism: dict[str, Any]
) -> None:
    bundle = released(run_release(private_request(tmp_path, mechanism)))
    guarantee = bundle.manifest.guarantee
    if "epsilon" in mechanism:
        assert 0.99 * EPSILON < guarantee.epsilon <= EPSILON
    else:
        assert guarantee.mu == pytest.approx(0.5, rel=1e-9)
        assert guarantee.mu <= 0.5
    verified(bundle.manifest.release)


def test_folds_share_constants(tmp_path: Path) -> None:
    bundle = released(run_release(private_request(tmp_path, request={"folds": 3})))
    assert len(bundle.folds) == 3
    verified(bundle.manifest.release)


def test_cluster_counts_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise, the release of a cluster is that of one machine."""
    import dask  # takes long, in every worker
    from distributed import LocalCluster

    monkeypatch.setattr(
        "gramercy.mechanisms.sampling.sampler.rounded_gaussian",
        lambda scale, size: np.zeros(size, np.int64),
    )
    memory = {"distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}
    with (
        dask.config.set(memory),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
    ):
        engine = {"kind": "dask", "scheduler": cluster.scheduler_address}
        alone = released(run_release(private_request(tmp_path)))
        keys = {"version": "v2", "engine": engine}
        together = released(run_release(private_request(tmp_path, request=keys)))
    assert np.array_equal(alone.raw, together.raw)
    assert np.array_equal(alone.further["lost"], together.further["lost"])
    assert alone.manifest.columns == together.manifest.columns


def test_marginals_need_no_other_keys(tmp_path: Path) -> None:
    mechanism = {"name": "marginals", "epsilon": EPSILON, "delta": DELTA}
    place = write_request(
        tmp_path, rows=ROWS, columns=COLUMNS, budget=BUDGET, request={"mechanism": mechanism}
    )
    plan = read_plan(place)
    assert plan.spec.estimates_constants
    assert plan.request.estimates == ()


def test_marginals_give_constants_to_later_releases(tmp_path: Path) -> None:
    mechanism = {"name": "marginals", "epsilon": EPSILON, "delta": DELTA}
    request_of_marginals = private_request(tmp_path, mechanism)
    name = run_release(request_of_marginals)
    marginals = released(name)
    assert marginals.manifest.kind == "marginals"
    assert not marginals.raw.size
    assert [each.column for each in marginals.marginals] == list(COLUMNS)
    verified(name)
    scaled = run_release(private_request(tmp_path, request={"scaling": {"from": name}}))
    bundle = released(scaled)
    assert bundle.manifest.columns == marginals.manifest.columns
    assert [each.column for each in bundle.histograms] == [ROW_LENGTHS, TURNED_LENGTHS]
    stated = bundle.manifest.scaling
    assert (stated.release, stated.sha256) == (name, marginals.sha256)
    verified(scaled)
    alone = read_plan(private_request(tmp_path)).mechanism.guarantee.mu
    assert bundle.manifest.guarantee.mu > alone  # constants cost nothing here
    assert bundle.evidence.lost is not None
    with raises(families.SCALING, reason="it has no histograms of columns"):
        read_plan(private_request(tmp_path, request={"scaling": {"from": scaled}}))


def test_releases_without_histograms_have_no_constants(tmp_path: Path) -> None:
    bounded = {name: COLUMNS[name] for name in ("weight", "gaps")}
    declared = {"version": "v0", "scaling": "declared"}
    run_release(private_request(tmp_path, columns=bounded, request=declared))
    no_histograms = "it has no histograms of columns"
    for name, reason in (("absent", "it is not in the archive"), ("v0-r1", no_histograms)):
        with raises(families.SCALING, reason=reason):
            keys = {"scaling": {"from": name}}
            read_plan(private_request(tmp_path, columns=bounded, request=keys))


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"columns": {"age": {"lower": 0, "upper": 9}}}, "the bounds of age were others"),
        ({"columns": {"bmi": {"lower": 0, "upper": 80}}}, "it does not have bmi"),
        ({"columns": {"age": None}}, "it has age too"),
        ({"intercept": False}, "it has (intercept) too"),
    ],
)
def test_changes_of_the_contract_are_named(
    tmp_path: Path, keys: dict[str, Any], reason: str
) -> None:
    columns = {name: {"lower": 0, "upper": 80} for name in ("age", "pulse")}
    mechanism = {"name": "marginals", "epsilon": 1, "delta": 1e-6}
    marginals = {"version": "v0", "mechanism": mechanism, "estimates": []}
    facts: dict[str, Any] = {"columns": columns, "neighbours": "add-remove", "intercept": True}
    (tmp_path / "table.csv").write_text("age,pulse,bmi\n1,2,3\n4,5,6\n7,8,9\n")
    run_release(write_request(tmp_path, request=marginals, **facts))
    changed = {name: each for name, each in (columns | keys.get("columns", {})).items() if each}
    facts |= keys | {"columns": changed}
    with raises(families.SCALING, reason=reason):
        read_plan(write_request(tmp_path, request={"scaling": {"from": "v0-r1"}}, **facts))


def test_few_rows_take_declared_constants(tmp_path: Path) -> None:
    """Public facts decide, so the plan is that of unit rows and the middle of the bounds."""
    bounded = {"weight": COLUMNS["weight"], "gaps": COLUMNS["gaps"]}
    table().head(80).to_csv(tmp_path / "table.csv", index=False)
    plan = read_plan(private_request(tmp_path, rows=80, columns=bounded))
    assert plan.spec.scaling is None
    assert isinstance(plan.normalisation, Unit)
    needed = rows_needed(2, target_mu(plan.request.mechanism))
    assert needed > 80
    enough = read_plan(private_request(tmp_path, rows=needed, columns=bounded))
    assert enough.spec.estimates_constants
    with raises(families.SCALING, count=80):
        read_plan(private_request(tmp_path, rows=80))


@pytest.mark.parametrize(
    "keys",
    [
        {"scaling": "declared"},
        {"mechanism": {"name": "laplace", "epsilon": 1.0}},
        {"mechanism": MECHANISM | {"name": "rows"}},
        {"mechanism": MECHANISM | {"calibration": "published"}},
        {"mechanism": MECHANISM | {"name": "marginals"}, "scaling": {"from": "v1-r1"}},
        {"mechanism": MECHANISM | {"name": "gaussian-iid"}, "scaling": ONE_STAGE},
        {"mechanism": MECHANISM | {"name": "marginals"}, "scaling": ONE_STAGE},
    ],
)
def test_unsuitable_requests_are_refused(tmp_path: Path, keys: dict[str, Any]) -> None:
    with raises(families.SCALING):
        read_plan(private_request(tmp_path, request=keys))


def test_key_depends_on_scaling_share_and_stages(tmp_path: Path) -> None:
    adaptive = {"kind": "private", "stages": "adaptive"}
    keys = [
        read_plan(private_request(tmp_path, request={"scaling": scaling})).key
        for scaling in (
            "private",
            {"kind": "private"},
            adaptive,
            {"kind": "private", "share": 0.3},
            ONE_STAGE,
        )
    ]
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys)) == 3


@pytest.mark.parametrize(
    ("scaling", "family"),
    [
        ({"kind": "private", "stages": 2}, families.VALUE),
        ({"kind": "private", "stages": "1"}, families.VALUE),
        ({"kind": "private", "stages": True}, families.VALUE),
        ({"kind": "private", "stages": "adaptiv"}, families.KEY),
        ({"kind": "declared", "stages": 1}, families.KEY),
        ({"from": "v1-r1", "stages": 1}, families.REQUEST_KEYS),
        ({"from": "v1-r1", "stages": "adaptive"}, families.REQUEST_KEYS),
    ],
)
def test_other_stages_are_refused(
    tmp_path: Path, scaling: dict[str, Any], family: families.Family[Any]
) -> None:
    with pytest.raises(RequestError) as caught:
        read_plan(private_request(tmp_path, request={"scaling": scaling}))
    (detail,) = caught.value.details
    assert detail.code == family.code
    assert detail.key in {"scaling", "scaling.stages"}


def test_one_stage_has_no_pilot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = private_request(tmp_path)
    adaptive = read_plan(request)
    stated = run_json("plan", request, capsys=capsys)["share_of_pilot"]
    assert stated == adaptive.share_of_pilot
    assert f"{100 * stated:.0f} %" in run_command("plan", request, capsys=capsys)[1]
    request = private_request(tmp_path, request={"scaling": ONE_STAGE})
    plain = read_plan(request)
    assert run_json("plan", request, capsys=capsys)["share_of_pilot"] == 0
    shares = adaptive.spec.scaling, plain.spec.scaling
    assert shares[0] is not None
    assert shares[1] is not None
    assert shares[0].pilot > 0
    assert shares[0].turned > 0
    assert plain.calibration.pilot is None
    assert shares[1] == shares[0].model_copy(update={"pilot": 0.0, "turned": 0.0})
    assert plain.guarantee.mu == pytest.approx(adaptive.guarantee.mu, rel=1e-9)
    assert plain.law.sd_off_diagonal < adaptive.law.sd_off_diagonal


@pytest.mark.parametrize(
    ("limit", "unit", "reads"), [(1 << 30, {}, 1), (1000, {}, 8), (1 << 30, PERSONS, 12)]
)
def test_table_is_read_once_where_its_cells_fit_into_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    unit: dict[str, Any],
    reads: int,
) -> None:
    """Persons are looked up in every pass, and measured before they are summed.

    For the matrix of lost moments, their rows are measured as for the matrix itself, and then what
    they lose.
    """
    opened: list[str] = []
    read = CsvTables.cell_batches

    def counted(*args: Any) -> Any:
        opened.append("")
        return read(*args)

    monkeypatch.setattr(CsvTables, "cell_batches", counted)
    monkeypatch.setattr(private_table, "KeptCells", partial(KeptCells, limit=limit))
    release = run_release(private_request(tmp_path, MECHANISM | {"epsilon": 16.0}, **unit))
    assert len(opened) == reads
    exact = released(release).manifest.rows.value
    assert exact == (ROWS // 4 if unit else ROWS)


def test_crash_between_draws_is_a_spent_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    place = private_request(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr("gramercy.pipeline.publish.drawing.count_lengths", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run_release(place)
    with raises(families.SPENT):
        run_release(place)
    (charge,) = Context.default().ledger.charges("toy")
    assert charge.state == "spent"


def test_table_that_changes_between_passes_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = read_plan(private_request(tmp_path))
    first = accumulate(plan)
    with (tmp_path / "table.csv").open("a") as stream:
        stream.write("1,2,3,x,p\n")
    with raises(families.CHANGED):
        publish(Context.default(), plan, first)
    (charge,) = Context.default().ledger.charges("toy")
    assert charge.state == "spent"


@pytest.mark.parametrize("tampered", ["centre", "radius", "present", "count"])
def test_tampered_constants_are_found(release: str, tampered: str) -> None:
    archive = Context.default().archive
    place, bundle = archive.release("toy", release), released(release)
    facts = bundle.manifest
    assert facts.scaling.present is not None
    if tampered == "centre":
        weight = column(bundle, "weight")
        changed = weight.model_copy(update={"centre": weight.centre + weight.scale / 10})
        facts = facts.model_copy(update={"columns": (changed, *facts.columns[1:])})
    elif tampered == "radius":
        facts = facts.model_copy(update={"normalisation": Clip(radius=3.21)})
    elif tampered == "present":
        present = (0.5, *facts.scaling.present[1:])
        scaling = facts.scaling.model_copy(update={"present": present})
        facts = facts.model_copy(update={"scaling": scaling})
    else:
        _move_counts(place / MARGINALS)
    _write_and_seal(place, facts)
    with raises(families.CONTRADICTION):  # the card states the radius
        verify_release(archive, "toy", release, None)


def _move_counts(path: Path) -> None:
    """Move the mass of the first column's last stage far away."""
    frame = pd.read_parquet(path)
    own = frame[frame["column"] == "weight"]
    stage = own[own["stage"] == own["stage"].max()]
    frame.loc[stage.index, "count"] = stage["count"].to_numpy()[::-1]
    path.chmod(0o644)
    table = frame.astype({"stage": "int32"})
    table.to_parquet(path, index=False, store_schema=False, compression=None)


def _write_and_seal(place: Path, facts: Any, without: tuple[str, ...] = ()) -> None:
    for path in place.iterdir():
        path.chmod(0o644)
    descriptor = release_descriptor(place, facts)
    for key in without:
        del descriptor["dp"]["scaling"][key]
    write_descriptor(place, descriptor)
    seal(place)


def test_facts_that_were_added_later_have_defaults(tmp_path: Path) -> None:
    """A bundle of before there were pilots is that of one stage."""
    release = run_release(private_request(tmp_path, request={"scaling": ONE_STAGE}))
    archive = Context.default().archive
    place = archive.release("toy", release)
    added = ("pilot", "turned", "metric_radius")
    _write_and_seal(place, read_release(place).manifest, without=added)
    read = read_release(place)
    assert read.manifest.scaling is not None
    assert (read.manifest.scaling.pilot, read.manifest.is_whitened, read.root) == (0, False, None)
    verify_release(archive, "toy", release, None)


def test_facts_of_a_pilot_are_not_left_out(tmp_path: Path) -> None:
    release = run_release(private_request(tmp_path))
    archive = Context.default().archive
    place = archive.release("toy", release)
    _write_and_seal(place, read_release(place).manifest, without=("turned",))
    with pytest.raises(BundleError):
        verify_release(archive, "toy", release, None)


@pytest.mark.parametrize("missing", ["bounds", "present", "radius"])
def test_incomplete_facts_about_constants_are_refused(release: str, missing: str) -> None:
    facts = released(release).manifest.model_dump()
    if missing == "radius":
        facts["normalisation"]["radius"] = None
    else:
        facts["scaling"][missing] = facts["scaling"][missing][1:]
    with raises(families.INCOMPLETE_FACTS):
        ReleaseManifest.model_validate(facts)
