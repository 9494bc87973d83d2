"""Forged bundles are refused, even if they were sealed again."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gramercy.archive.bundles.bundle_kinds import read_release
from gramercy.archive.bundles.number_files import matrix_files, write_matrix
from gramercy.archive.seal.bundle import seal
from gramercy.archive.store.opening import archive_of
from gramercy.common.home import Home
from gramercy.estimators.ridge import Ridge
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate
from gramercy.pipeline.publish.drawing import arrays_close
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from tests.support.factories import MECHANISM, edit_json, run_command, run_release, write_request
from tests.support.problems import raises

FORGERIES: dict[str, Any] = {
    "mu": lambda f: f["dp"]["guarantee"].update(mu=0.01),
    "epsilon": lambda f: f["dp"]["guarantee"].update(epsilon=0.1),
    "scale": lambda f: f["dp"]["calibration"]["constants"].update(scale=60.0),
    "negative scale": lambda f: f["dp"]["calibration"]["constants"].update(scale=-1.0),
    "no scale": lambda f: f["dp"]["calibration"]["constants"].clear(),
    "sensitivity": lambda f: f["dp"]["calibration"]["constants"].update(sensitivity=0.1),
    "arithmetic": lambda f: f["dp"]["calibration"].update(arithmetic="floating-point"),
    "bits": lambda f: f["dp"]["calibration"]["lattice"].update(bits=5000),
    "asked epsilon": lambda f: f["dp"]["mechanism"].update(epsilon=0.5),
    "asked for nothing": lambda f: f["dp"]["mechanism"].clear(),
    "mechanism": lambda f: f["dp"]["mechanism"].update(name="magic"),
    "noise": lambda f: f["dp"]["noise"].update(sd_diagonal=1.0),
    "rows": lambda f: f["dp"]["rows"].update(value=1e6),
    "huge rows": lambda f: f["dp"]["rows"].update(value=1e308),
    "status": lambda f: f["dp"]["rows"].update(status="noisy"),
    "declared rows": lambda f: f["dp"]["dataset"].update(rows=41),
    "normalisation": lambda f: f["dp"].update(normalisation={"kind": "clip", "radius": 9.0}),
    "neighbours": lambda f: f["dp"].update(neighbours="add-remove"),
    "statement": lambda f: f["dp"]["card"].update(statement="Safe."),
    "card": lambda f: f["dp"]["card"].update(certified_by="no one"),
    "no card": lambda f: f["dp"]["card"].clear(),
    "release": lambda f: f["dp"].update(release="v9-r1"),
    "dataset": lambda f: f["dp"]["dataset"].update(id="other"),
    "columns": lambda f: f["dp"]["columns"].pop(),
    "no columns": lambda f: f["dp"]["columns"].clear(),
    "title": lambda f: f.update(title="Another"),
    "version": lambda f: f.update(version="v7"),
    "resource": lambda f: f["resources"][0].update(bytes=1),
    "schema": lambda f: f["resources"][0].pop("schema"),
    "fewer resources": lambda f: f["resources"].pop(),
    "more resources": lambda f: f["resources"].append({"path": "none.csv"}),
    "no resources": lambda f: f.update(resources=None),
    "kind": lambda f: f["dp"].update(kind="rows"),
    "no manifest": lambda f: f.pop("dp"),
}


def forge(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Seal a changed bundle again, and verify it; return the error."""
    (folder / "SHA256SUMS").chmod(0o644)
    seal(folder)
    archive = next(parent for parent in folder.parents if parent.name == "copy")
    code, out, err = run_command("verify", "--archive", archive, capsys=capsys)
    assert code == 2, out
    assert "✗" in out
    assert "GRM-" in out
    assert "Traceback" not in err
    return out


@pytest.mark.slow
def test_forged_descriptions_fail_verification(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    place = tmp_path / "copy/toy/v1-r1/release"
    for name, edit in FORGERIES.items():
        shutil.copytree(home / "archive", tmp_path / "copy")
        edit_json(place / "datapackage.json", edit)
        err = forge(place, capsys)
        assert any(file.name in err for file in place.iterdir()), name
        shutil.rmtree(tmp_path / "copy")


@pytest.mark.slow
@pytest.mark.parametrize("charged", [False, True])
def test_lowered_epsilon_is_stated_with_the_true_one(
    charged: bool, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What an auditor must know: which guarantee is stated, and which one was charged."""
    run_release(write_request(tmp_path, request={"mechanism": MECHANISM | {"epsilon": 2.0}}))
    context, lowered = Context.default(), {"epsilon": 0.1}
    place = context.archive.release("toy", "v1-r1")
    mu = read_release(place).manifest.guarantee.mu
    if charged:
        lowered |= {"mu": mu / 20}
    edit_json(place / "datapackage.json", lambda facts: facts["dp"]["guarantee"].update(lowered))
    for path in place.iterdir():
        path.chmod(0o644)
    context.archive.seal(place)
    ledger = context.existing_ledger
    with raises(families.CONTRADICTION) as contradicted:
        verify_release(context.archive, "toy", "v1-r1", None)
    assert contradicted.value.facts["key"] == "guarantee"
    pairs = zip(*(contradicted.value.facts[x] for x in ("stated", "recomputed")), strict=True)
    assert ("guarantee.epsilon=0.1", "guarantee.epsilon=2.0") in list(pairs)
    if charged:
        with raises(families.CHARGE, epsilon=0.1, mu=mu / 20, charged_mu=mu) as refused:
            verify_release(context.archive, "toy", "v1-r1", ledger)
        assert refused.value.facts["charged_epsilon"] == pytest.approx(2.0)
    for command in ("verify", "audit"):
        code, out, _ = run_command(command, capsys=capsys)
        assert code == 2
        assert (families.CHARGE if charged else families.CONTRADICTION).code in out


@pytest.mark.slow
def test_forged_files_fail_verification(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    place = tmp_path / "copy/toy/v1-r1/release"
    matrix = np.load(home / "archive/toy/v1-r1/release/second_moment.npy")
    wrong = {"inf": np.full((3, 3), np.inf), "shape": np.eye(4), "huge": np.full((3, 3), 1e9)}
    for name in ("second_moment.parquet", "second_moment.npy", "second_moment.csv", "CARD.md"):
        for junk in (None, b"", b"junk", b"\xff\xfe\x00"):
            shutil.copytree(home / "archive", tmp_path / "copy")
            (place / name).chmod(0o644)
            (place / name).unlink() if junk is None else (place / name).write_bytes(junk)
            forge(place, capsys)
            shutil.rmtree(tmp_path / "copy")
    for name, numbers in {**wrong, "off the lattice": matrix + 1e-3 / 7}.items():
        shutil.copytree(home / "archive", tmp_path / "copy")
        for file in matrix_files("second_moment", 3):
            (place / file).unlink()
        write_matrix(place, "second_moment", numbers, [f"c{i}" for i in range(len(numbers))])
        assert "second_moment" in forge(place, capsys), name
        shutil.rmtree(tmp_path / "copy")


def test_forged_estimates_fail_verification(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(write_request(tmp_path))
    done = make_estimate(Context.default(), "toy", "v1-r1", Ridge()).manifest.estimate
    place = tmp_path / "copy/toy/v1-r1/estimates" / done
    for name, edit in {
        "penalty": lambda f: f["dp"].update(penalty=0.1),
        "names": lambda f: f["dp"]["names"].reverse(),
        "release": lambda f: f["dp"].update(release="v9-r1"),
        "digest": lambda f: f["dp"].update(release_sha256="0" * 64),
        "settings": lambda f: f["dp"]["estimator"].update(input="raw"),
        "estimator": lambda f: f["dp"]["estimator"].update(name="magic"),
        "resources": lambda f: f["resources"].clear(),
    }.items():
        shutil.copytree(home / "archive", tmp_path / "copy")
        edit_json(place / "datapackage.json", edit)
        err = forge(place, capsys)
        assert done in err, name
        shutil.rmtree(tmp_path / "copy")


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget",
    [{"failure_share": 2e-6}, {"delta": 0.5, "failure_share": 0.05}, {"epsilon": -1.0}],
)
def test_impossible_budget_in_a_manifest_fails_verification(
    tmp_path: Path, budget: dict[str, float]
) -> None:
    place = archive_of(Home.default()).release("toy", run_release(write_request(tmp_path)))
    edit_json(place / "datapackage.json", lambda facts: facts["dp"]["budget"].update(budget))
    seal(place)
    with raises(families.MANIFEST):
        verify_release(archive_of(Home.default()), "toy", "v1-r1", None)


def test_edges_that_are_rounding_errors_agree_on_all_machines() -> None:
    """Ridge of a diagonal matrix: its partial correlations are zero, except for rounding errors."""
    a, b = np.array([[0.0, 1e-16], [1e-16, 0.0]]), np.array([[0.0, -3e-17], [-3e-17, 0.0]])
    assert arrays_close(a, b, scale=1.0)
    assert not arrays_close(a, b)
    assert not arrays_close(np.array([0.2]), np.array([0.2 + 1e-5]), scale=1.0)
