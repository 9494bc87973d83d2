"""Every mechanism through the whole pipeline, including verification."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import gramercy
from gramercy.api.catalogue import Catalogue
from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import read_release, release_card, release_descriptor
from gramercy.archive.bundles.package import read_manifest
from gramercy.archive.store.archive import Archive
from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger, Statement
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.mechanism import RowWise
from gramercy.pipeline.plan.forecast import RankedMechanism, UnsuitableMechanism, rank_mechanisms
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.budget import Budget
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.problem import Family
from tests.support.conformance import ALL_PAIRS, CASES
from tests.support.factories import (
    bundle_bytes,
    edit_json,
    read_plan,
    run_command,
    run_json,
    run_pipeline,
    run_release,
    write_request,
    write_table,
)
from tests.support.problems import like, raises

ROWS, P = 400, 4


def request_for(name: str, epsilon: float = 2.0, **keys: Any) -> dict[str, Any]:
    case = CASES[name]
    mechanism = {"name": name, "epsilon": epsilon, "delta": case.delta(1e-6)} | dict(case.keys)
    return {
        "mechanism": mechanism | keys,
        "normalisation": case.normalisation,
        **({"estimates": []} if name in {"output", "marginals"} else {}),
    }


BUDGET = {"budget": {"epsilon": 50.0, "delta": 1e-4}}


def write_inputs(folder: Path, name: str, **changes: Any) -> Path:
    write_table(folder / "table.csv", ROWS, P)
    facts = {"rows": ROWS, "columns": {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(P)}}
    return write_request(folder, **{"request": request_for(name)} | facts | BUDGET | changes)


def moment(folder: Path, normalisation: str) -> np.ndarray[Any, Any]:
    """The second moment of the normalised rows, computed with numpy."""
    scaled = pd.read_csv(folder / "table.csv").to_numpy().clip(-5, 5)
    rows = np.rint(scaled) if normalisation == "whole" else scaled / 5
    if normalisation == "unit":
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.T @ rows / len(rows)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "neighbours"), ALL_PAIRS)
def test_release_estimate_report_verify(
    name: str, neighbours: str, tmp_path: Path, home: Path
) -> None:
    root = run_pipeline(write_inputs(tmp_path, name, neighbours=neighbours))
    archive, ledger = open_archive(home / "archive"), Ledger(Home.default().ledger)
    verified = verify_release(archive, "toy", "v1-r1", ledger)
    assert not verified.unchecked
    release = Catalogue(home / "archive")["toy/v1-r1"]
    assert (root / "release" / "CARD.md").read_text().startswith("# A toy")
    facts = release.manifest
    assert facts.guarantee.epsilon <= 2.0
    assert ledger.charges("toy")[0].guarantee.mu == facts.guarantee.mu
    if name == "output":
        with raises(families.ESTIMATE):
            _ = release.second_moment
        assert (np.linalg.eigvalsh(release.projected) > -1e-9).all()
        return
    if name == "marginals":
        with raises(families.ANALYSIS):
            _ = release.second_moment
        totals = release.marginals.groupby("column")["count"].sum()
        bins = release.marginals.groupby("column").size()
        sd = facts.calibration.constants["scale"]
        assert (np.abs(totals - ROWS) < 12 * sd * np.sqrt(bins)).all()
        assert (facts.rows.status == "public") == (neighbours == "replace-one")
        return
    # The published matrix is the truth plus noise of the stated size; audits test the exact law.
    error = release.second_moment.to_numpy() - moment(tmp_path, CASES[name].normalisation)
    law, root_rows = facts.noise, 1.0 if facts.rows.status == "public" else 1.5
    far = np.abs(error - law.mean * np.eye(P)) / law.deviations(P)
    assert far.max() < 12 * root_rows
    assert np.trace(release.denoised) <= facts.trace_bound * (1 + 1e-9)
    assert (np.linalg.eigvalsh(release.denoised) > -1e-9 * facts.trace_bound).all()
    assert (np.linalg.eigvalsh(release.projected) > -1e-9 * facts.trace_bound).all()
    assert set(release.estimates) == {p.name for p in (root / "estimates").iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows", "integer-rows", "local"])
def test_published_rows_have_the_stated_noise(name: str, tmp_path: Path, home: Path) -> None:
    """They are the table's rows plus noise of the stated scale, and determine the matrix."""
    request = write_inputs(tmp_path, name)
    made = read_plan(request).mechanism
    assert isinstance(made, RowWise)
    run_release(request)
    release = Catalogue(home / "archive")["toy/v1-r1"]
    seen = pd.concat(list(release.rows())).to_numpy()
    rows = pd.read_csv(tmp_path / "table.csv").to_numpy().clip(-5, 5) / 5
    if name == "integer-rows":
        rows = np.rint(rows * 5)
        assert (seen == np.rint(seen)).all()
    else:
        rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    if name == "local":
        i, j = np.triu_indices(P)
        noise = (seen - rows[:, i] * rows[:, j]) / np.where(i == j, 1, np.sqrt(0.5))
        assert list(next(release.rows()).columns)[:2] == ["c0 * c0", "c0 * c1"]
    else:
        noise = seen - rows
    count = noise.size
    assert abs(noise.std() / made.scale - 1) < 5 / np.sqrt(2 * count) + 2e-3
    assert abs(noise.mean()) < 5 * made.scale / np.sqrt(count)


@pytest.mark.slow
def test_spelling_of_cells_does_not_change_published_rows(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spelling changes the length of lines, and so where a CSV batch ends; both are private."""
    monkeypatch.setattr("gramercy.archive.bundles.number_files._BATCH_CELLS", 400)
    monkeypatch.setattr("gramercy.tables.batches.BATCH_CELLS", 300)
    monkeypatch.setattr(
        "gramercy.mechanisms.sampling.sampler.rounded_gaussian",
        lambda _, size: np.arange(size, dtype=np.int64),
    )
    rows = 700
    seen = []
    for k, spelled in enumerate(("1.5", "1.5" + "0" * 6_000_000)):
        folder = tmp_path / str(k)
        folder.mkdir()
        request = write_inputs(folder, "rows", rows=rows, id=f"toy-{k}")
        write_table(folder / "table.csv", rows, P)
        lines = (folder / "table.csv").read_text().splitlines()
        lines[300] = ",".join(["1.5", spelled[:4_000_000], "1", "2"])
        (folder / "table.csv").write_text("\n".join(lines) + "\n")
        run_release(request)
        made = open_archive(home / "archive").release(f"toy-{k}", "v1-r1")
        file = pq.ParquetFile(made / "rows.parquet").metadata
        sizes = [file.row_group(i).num_rows for i in range(file.num_row_groups)]
        seen.append((sizes, np.load(made / "second_moment.npy").tobytes()))
    assert seen[0] == seen[1]
    assert seen[0][0] == [100] * 7


@pytest.mark.slow
def test_malformed_lines_become_zero_rows_in_place(tmp_path: Path, home: Path) -> None:
    """A malformed line must not shift other published rows: it becomes a zero row."""
    request = write_inputs(tmp_path, "integer-rows", rows=8)
    lines = ["c0,c1,c2,c3", "1,1,1,1", '"open,2,2,2', "3,3,3", "", "5,5,5,5,5", "4,4,4,4"]
    lines += ["\r,1,1,1", '"5","5",5,5']
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as quiet:
        quiet.setattr(
            "gramercy.mechanisms.sampling.sampler.rounded_gaussian",
            lambda _, size: np.zeros(size, np.int64),
        )
        run_release(request)
    seen = pd.concat(list(Catalogue(home / "archive")["toy/v1-r1"].rows())).to_numpy()
    assert seen[:, 0].tolist() == [1, 0, 0, 0, 0, 4, 0, 5]
    record = json.loads((home / "internal" / "toy" / "v1-r1.json").read_text())
    assert record["malformed_rows"] == 5


@pytest.mark.slow
def test_integer_rows_are_published_in_table_units(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Published whole numbers have the table's units; the second moment is about the centres."""
    monkeypatch.setattr(
        "gramercy.mechanisms.sampling.sampler.rounded_gaussian", lambda _, n: np.zeros(n, np.int64)
    )
    pd.DataFrame({"c0": [7, 12, None], "c1": [0, 3, 9]}).to_csv(tmp_path / "table.csv", index=False)
    columns = {"c0": {"lower": 0, "upper": 10}, "c1": {"lower": 0, "upper": 9, "centre": 2}}
    run_release(
        write_request(tmp_path, request=request_for("integer-rows"), rows=3, columns=columns)
    )
    release = Catalogue(home / "archive")["toy/v1-r1"]
    assert pd.concat(list(release.rows())).to_numpy().tolist() == [[7, 0], [10, 3], [5, 9]]
    facts = json.loads((release.path / "datapackage.json").read_text())
    described = next(each for each in facts["resources"] if each["path"] == "rows.parquet")
    assert [each["name"] for each in described["schema"]["fields"]] == ["c0", "c1"]
    verify_release(open_archive(home / "archive"), "toy", "v1-r1", None)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["off the lattice", "a row less", "another matrix"])
def test_forged_rows_fail_verification(what: str, tmp_path: Path, home: Path) -> None:
    """Verification detects rewritten rows under a valid seal, even without the ledger."""
    run_release(write_inputs(tmp_path, "rows"))
    archive = open_archive(home / "archive")
    folder = archive.release("toy", "v1-r1")
    frame = pd.read_parquet(folder / "rows.parquet")
    if what == "off the lattice":
        frame.iloc[3, 0] += 5e-6  # a third of a step
    elif what == "a row less":
        frame = frame.iloc[:-1]
    else:
        frame.iloc[3] *= -4
    folder.chmod(0o755)
    (folder / "rows.parquet").chmod(0o644)
    frame.to_parquet(folder / "rows.parquet", index=False)
    reseal_forged(archive, folder)
    with pytest.raises(BundleError) as refused:
        verify_release(archive, "toy", "v1-r1", None)
    assert "rows" in str(refused.value.facts)


def reseal_forged(archive: Archive, folder: Path, **facts: Any) -> None:
    """Describe and seal a bundle again, as a forger with all the tools would."""
    manifest = read_manifest(folder, ReleaseManifest).model_copy(update=facts)
    described = release_descriptor(folder, manifest)
    edit_json(folder / "datapackage.json", lambda held: held.update(described))
    for name in ("SHA256SUMS", "CARD.md"):
        (folder / name).chmod(0o644)
    (folder / "CARD.md").write_text(release_card(manifest))
    described = release_descriptor(folder, manifest)
    edit_json(folder / "datapackage.json", lambda held: held.update(described))
    (folder / "SHA256SUMS").unlink()
    archive.seal(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gaussian", "matrix-laplace"])
def test_forged_sources_fail_verification(name: str, tmp_path: Path, home: Path) -> None:
    """Only an average of reports may have sources."""
    run_release(write_inputs(tmp_path, name))
    archive = open_archive(home / "archive")
    folder = archive.release("toy", "v1-r1")
    folder.chmod(0o755)
    reseal_forged(archive, folder, sources={"x/y#1": "0" * 64})
    assert read_release(folder).manifest.sources
    with raises(families.CONTRADICTION) as refused:
        verify_release(archive, "toy", "v1-r1", None)
    assert refused.value.facts["key"] == "sources"


ADD_REMOVE = {"neighbours": "add-remove"}
REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], Family[Any], dict[str, Any]]] = [
    ("k-norm", {"arithmetic": "exact"}, {}, families.ARITHMETIC, {}),
    ("wishart", {"arithmetic": "exact"}, {}, families.ARITHMETIC, {}),
    ("gaussian", {"arithmetic": "floating-point"}, {}, families.ARITHMETIC, {}),
    ("rows", {}, ADD_REMOVE, families.UNSUPPORTED, ADD_REMOVE),
    ("local", {}, ADD_REMOVE, families.UNSUPPORTED, ADD_REMOVE),
    ("output", {}, ADD_REMOVE, families.UNSUPPORTED, ADD_REMOVE),
    ("gaussian", {}, {"privacy_unit": "cell"}, families.UNSUPPORTED, {}),
    ("rows", {}, {"privacy_unit": "cell"}, families.UNSUPPORTED, {}),
    ("gaussian", {"mu": 0.5}, {}, families.REQUEST_KEYS, {"keys": ("epsilon", "mu")}),
    ("rows", {"snr": 3.0}, {}, families.REQUEST_KEYS, {"keys": ("epsilon", "mu", "snr")}),
    ("wishart", {"delta": 0.0}, {}, families.VALUE, {}),
    ("gaussian", {"delta": 0.0}, {}, families.VALUE, {"key": "mechanism.delta"}),
    ("output", {"penalty": -1.0}, {}, families.VALUE, {"key": "mechanism.penalty"}),
    ("output", {"delta": 0.0}, {}, families.VALUE, {}),
    ("gaussian", {"calibration": "papers"}, {}, families.VALUE, {"key": "mechanism.calibration"}),
]


@pytest.mark.parametrize(("name", "mechanism", "changes", "problem", "facts"), REFUSED)
def test_meaningless_request_is_refused_with_a_reason(
    name: str,
    mechanism: dict[str, Any],
    changes: dict[str, Any],
    problem: Family[Any],
    facts: dict[str, Any],
    tmp_path: Path,
) -> None:
    request = write_request(tmp_path, request=request_for(name, **mechanism), **changes)
    with raises(problem, **facts):
        read_plan(request)


def test_integer_rows_require_whole_numbers(tmp_path: Path) -> None:
    for name, normalisation in (("gaussian", "whole"), ("integer-rows", "unit")):
        with raises(families.REQUEST_USE):
            read_plan(
                write_request(
                    tmp_path, request=request_for(name) | {"normalisation": normalisation}
                )
            )
    columns = {"c0": {"lower": 0.1, "upper": 0.9}}
    with raises(families.CONTRACT_USE, column="c0"):
        read_plan(write_request(tmp_path, request=request_for("integer-rows"), columns=columns))


PUBLISHED: list[tuple[str, dict[str, Any], str, float]] = [
    ("wishart", {"epsilon": 1.0, "delta": 0.0}, "exact_delta", 0.2835),
    ("output", {"epsilon": 1.0, "delta": 1e-6}, "exact_delta", 1.0),
    ("gaussian-iid", {"epsilon": 1.0, "delta": 1e-6, "paper": "WX"}, "exact_epsilon", 1.14),
    ("gaussian", {"epsilon": 20.0, "delta": 1e-6}, "exact_epsilon", 24.41),
    ("local", {"epsilon": 1.0, "delta": 1e-6}, "exact_epsilon", 1.14),
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "privacy", "fact", "value"), PUBLISHED, ids=str)
def test_published_scale_with_a_false_claim_is_refused(
    name: str,
    privacy: dict[str, Any],
    fact: str,
    value: float,
    tmp_path: Path,
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    facts = request_for(name, calibration="published")
    facts["mechanism"] |= privacy
    request = write_request(tmp_path, request=facts)
    epsilon, delta = privacy["epsilon"], privacy["delta"]
    with raises(families.GUARANTEE, mechanism=name, epsilon=epsilon, delta=delta) as refused:
        read_plan(request)
    assert refused.value.facts[fact] == pytest.approx(value, rel=0.02)
    code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert (code, families.GUARANTEE.code in err) == (2, True)
    assert Ledger(Home.default().ledger).datasets() == []


@pytest.mark.parametrize(
    "name", ["gaussian-iid", "laplace", pytest.param("wishart", marks=pytest.mark.slow), "rows"]
)
def test_valid_published_scale_is_charged_its_exact_cost(name: str, tmp_path: Path) -> None:
    write_inputs(tmp_path, name)
    facts = request_for(name, epsilon=0.5, calibration="published")
    plan = read_plan(write_request(tmp_path, request=facts, rows=ROWS))
    exact = plan.guarantee.epsilon(facts["mechanism"]["delta"])
    assert exact <= 0.5
    if name in {"laplace", "wishart"}:  # far more noise than necessary
        assert exact < 0.4


def test_snr_in_decibels_sets_the_noise_of_rows(tmp_path: Path) -> None:
    """The public mean square of a cell is 1/p. The plan states mu and epsilon per row and cell."""
    mechanism = {"name": "rows", "snr": -20.0, "delta": 1e-6}
    plan = read_plan(write_request(tmp_path, request={"mechanism": mechanism}))
    assert plan.mechanism.constants()["scale"] == pytest.approx(np.sqrt(100 / 3))
    assert plan.guarantee.mu == pytest.approx(2 / np.sqrt(100 / 3))
    for key in ("mu_row", "epsilon_row", "mu_cell", "epsilon_cell", "snr_db"):
        assert np.isfinite(plan.facts()[key])
    assert plan.facts()["snr_db"] == pytest.approx(-20)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "normalisation"), [("rows", "box"), ("integer-rows", "whole")])
def test_cell_level_privacy_needs_less_noise(
    name: str, normalisation: str, tmp_path: Path, home: Path
) -> None:
    """A guarantee per cell needs less noise, by the root of the number of columns."""
    scales = {}
    for unit in ("row", "cell"):
        what = request_for(name) | {"normalisation": normalisation}
        facts: dict[str, Any] = {"request": what, "privacy_unit": unit, "id": f"toy-{unit}"}
        request = write_inputs(tmp_path, name, **facts)
        if unit == "cell":  # in CSV, a malformed cell makes its whole line unreadable
            with raises(families.SOURCE):
                run_release(request)
            pd.read_csv(tmp_path / "table.csv").to_parquet(tmp_path / "table.parquet")
            request = write_inputs(tmp_path, name, **facts, source="table.parquet")
        plan = read_plan(request)
        scales[unit] = plan.mechanism.constants()["scale"]
        run_release(request)
        release = Catalogue(home / "archive")[f"toy-{unit}/v1-r1"]
        assert f"any one {unit} had been" in release.manifest.card["statement"]
        assert release.manifest.card["neighbours"].startswith(f"one {unit} replaced by any other")
        verify_release(open_archive(home / "archive"), f"toy-{unit}", "v1-r1", None)
    assert scales["row"] / scales["cell"] == pytest.approx(np.sqrt(P), rel=1e-3)


@pytest.mark.slow
@pytest.mark.usefixtures("prefect_server")  # otherwise the command starts a server of its own
def test_randomize_and_aggregate(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two sources and one server, which never sees an exact row."""
    folders = []
    for k, rows in enumerate((30, 50)):
        folder = tmp_path / f"source-{k}"
        folder.mkdir()
        write_table(folder / "table.csv", rows, 3, seed=k)
        request = write_request(
            folder, request=request_for("local"), id=f"source-{k}", rows=rows, **BUDGET
        )
        run_release(request)
        folders.append(open_archive(home / "archive").release(f"source-{k}", "v1-r1"))
    server = tmp_path / "server"
    server.mkdir()
    request = write_request(
        server, request=request_for("local"), rows=80, id="server", source="none.csv"
    )
    (server / "table.csv").unlink()

    facts = run_json("aggregate", request, *folders, "--yes", capsys=capsys)
    release = Catalogue(home / "archive")["server/v1-r1"]
    assert facts["release"] == release.id
    parts = [Release(open_archive(home / "archive"), f"source-{k}", "v1-r1") for k in (0, 1)]
    total = sum(p.second_moment * p.manifest.rows.value for p in parts)
    assert np.allclose(release.second_moment, total / 80)
    assert list(release.manifest.sources.values()) == [p._bundle.sha256 for p in parts]
    assert release.manifest.kind == "second-moment"
    assert "before it leaves its source" in release.manifest.card["trust_model"]
    code, _, err = run_command("verify", "server", capsys=capsys)
    assert code == 0, err
    before = bundle_bytes(release.path)
    run_json("aggregate", request, *folders, "--yes", capsys=capsys)
    assert bundle_bytes(release.path) == before

    verified = verify_release(open_archive(home / "archive"), "server", "v1-r1", None)
    assert "average: recomputed from its sources" in verified.checks
    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(release.path.parent, elsewhere / "server" / "v1-r1")
    verified = verify_release(open_archive(elsewhere), "server", "v1-r1", None)
    assert like(families.NOT_CHECKED) in verified.unchecked

    # The same request makes reports and averages them: these are two distinct releases.
    own = request_for("local")
    source: dict[str, Any] = {"id": "source-0", "rows": 30, **BUDGET}
    again = write_request(tmp_path / "source-0", request=own, **source)
    run_json("aggregate", again, folders[0], "--yes", capsys=capsys)
    kinds = [Catalogue(home / "archive")[f"source-0/v1-r{k}"].manifest.kind for k in (1, 2)]
    assert kinds == ["reports", "second-moment"]

    def refuse(command: str, *given: object, rows: int = 80, request: Any = own) -> None:
        made = write_request(server, request=request, rows=rows, id="server")
        code, _, err = run_command(command, made, *given, "--yes", capsys=capsys)
        assert (code, families.REPORTS.code in err) == (2, True), err

    # Another average needs another version, and reports must not be given twice.
    refuse("aggregate", folders[0])
    run_release(write_request(tmp_path / "source-0", request=own | {"version": "v2"}, **source))
    twice = open_archive(home / "archive").release("source-0", "v2-r1")
    refuse("aggregate", folders[0], twice, rows=60, request=own | {"version": "v3"})
    another = {"version": "v2"}
    for given in (folders[:1] * 2, folders[:1], [release.path], [tmp_path]):
        refuse("aggregate", *given, request=own | another)
    less = request_for("local", epsilon=1.0) | another
    refuse("aggregate", folders[0], rows=30, request=less)
    refuse("randomize", request=request_for("gaussian"))
    refuse("aggregate", folders[0], request=request_for("gaussian"))


def ranked_for(request: Path) -> tuple[list[RankedMechanism], list[UnsuitableMechanism]]:
    plan = read_plan(request)
    return rank_mechanisms(plan.spec, plan.request.mechanism)


@pytest.mark.slow
def test_comparison_ranks_mechanisms_by_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Mechanisms are ranked by matrix error at the same guarantee; the others state a reason."""
    request = write_inputs(tmp_path, "gaussian")
    ranked, unsuitable = ranked_for(request)
    assert {each.name for each in [*ranked, *unsuitable]} == CASES.keys()
    errors = [each.error for each in ranked]
    assert errors == sorted(errors)
    assert all(each.guarantee.epsilon(1e-6) <= 2.0 for each in ranked)
    assert {each.name for each in unsuitable} == {"integer-rows", "output", "marginals"}
    facts = run_json("plan", request, "--compare", capsys=capsys)
    assert [each["mechanism"] for each in facts["ranking"]] == [each.name for each in ranked]
    code, out, _ = run_command("plan", request, "--compare", capsys=capsys)
    assert code == 0
    assert all(each.name in out for each in ranked)
    in_folds = write_request(tmp_path, request=request_for("gaussian", epsilon=2.0) | {"folds": 4})
    ranked, _ = ranked_for(in_folds)
    assert {each.name for each in ranked} == {"gaussian", "gaussian-iid"}
    assert ranked[0].error == pytest.approx(read_plan(in_folds).matrix_error)
    by_decibels = {"mechanism": {"name": "rows", "snr": 0.0, "delta": 1e-6}}
    ranked, _ = ranked_for(write_request(tmp_path, request=by_decibels))
    gaussian = next(each for each in ranked if each.name == "gaussian")
    assert gaussian.guarantee.mu == pytest.approx(2 * np.sqrt(3), rel=1e-6)


@pytest.mark.slow
def test_comparison_has_the_constants_of_the_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Private constants cost a part of the budget, and change what a mechanism gets."""
    private = request_for("gaussian", epsilon=2.0) | {"scaling": "private", "normalisation": "clip"}
    request = write_request(tmp_path, request=private, rows=50_000, intercept=True)
    plan = read_plan(request)
    assert plan.spec.estimates_constants
    ranking = run_json("plan", request, "--compare", "--no-table", capsys=capsys)["ranking"]
    errors = {each["mechanism"]: each["matrix_error"] for each in ranking}
    assert errors["gaussian"] == pytest.approx(plan.matrix_error, rel=1e-9)
    assert errors == {each.name: each.error for each in ranked_for(request)[0]}
    # A mechanism that takes no pilot does not pay for one.
    private["mechanism"]["name"] = "gaussian-iid"
    other = read_plan(write_request(tmp_path, request=private, rows=50_000, intercept=True))
    assert plan.share_of_pilot > 0 == other.share_of_pilot
    assert errors["gaussian-iid"] == pytest.approx(other.matrix_error, rel=1e-9)


def test_matrix_laplace_ranks_first_for_many_columns(tmp_path: Path) -> None:
    columns = {f"c{i}": {"lower": -5.0, "upper": 5.0} for i in range(64)}
    request = write_request(tmp_path, request=request_for("laplace", epsilon=1.0), columns=columns)
    ranked, _ = ranked_for(request)
    pure = [each for each in ranked if np.isfinite(each.guarantee.pure)]
    assert [each.name for each in pure] == ["matrix-laplace", "k-norm", "laplace"]
    assert pure[1].error / pure[0].error == pytest.approx(4, rel=0.01)


def test_mechanisms_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    known = run_json("mechanisms", capsys=capsys)
    assert [each["name"] for each in known] == list(CASES)
    assert all(each["summary"] for each in known)
    code, out, _ = run_command("mechanisms", capsys=capsys)
    assert code == 0
    assert all(name in out for name in CASES)


def test_pure_charges_compose_by_addition() -> None:
    """A budget of 3 holds three pure releases of 1, which Gaussian composition would not."""
    statement = Statement(Budget(epsilon=3.0, delta=1e-6))
    one = Guarantee.from_pure(1.0)
    assert statement.charges_left(one) == 3
    assert statement.after(one).charges_left(one) == 2
    assert statement.charges_left(Guarantee(0.01)) == int((gdp_mu(3.0, 0.9e-6) / 0.01) ** 2)
    assert statement.charges_left(Guarantee(0.01, delta0=1e-7)) == 1
    assert statement.charges_left(Guarantee(0.01, delta0=1.01e-7)) == 0


def test_guarantee_refused_is_exported_as_a_refusal() -> None:
    assert issubclass(gramercy.GuaranteeRefused, gramercy.Refused)


@pytest.mark.slow
def test_kept_wishart_mean_does_not_bias_the_row_count(tmp_path: Path, home: Path) -> None:
    run_release(
        write_inputs(
            tmp_path,
            "wishart",
            neighbours="add-remove",
            request=request_for("wishart", mean="kept"),
        )
    )
    release = Catalogue(home / "archive")["toy/v1-r1"]
    assert abs(release.manifest.rows.value - ROWS) < 6 * release.manifest.rows.sd
    assert (np.linalg.eigvalsh(release.second_moment) > -1e-6).all()
    verify_release(open_archive(home / "archive"), "toy", "v1-r1", None)
