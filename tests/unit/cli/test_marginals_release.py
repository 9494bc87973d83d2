"""Commands and pages for releases of marginals, and for constants taken from them."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from gramercy.archive.bundles.bundle_kinds import read_release, release_descriptor
from gramercy.archive.bundles.package import write_descriptor
from gramercy.archive.seal.bundle import seal
from gramercy.pipeline.catalogue.catalogue_pages import write_site
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_report
from gramercy.pipeline.verify.verification import verify_release
from gramercy.schemas import families
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.problem import Family
from tests.support.factories import run_command, run_json, run_release
from tests.support.histogram_tables import marginals_request
from tests.support.problems import raises

GAUSSIAN = {"name": "gaussian", "epsilon": 4.0, "delta": 1e-6}
FROM = {"scaling": {"from": "v1-r1"}, "mechanism": GAUSSIAN, "version": "v2"}


@pytest.fixture
def release(tmp_path: Path) -> str:
    """A release of marginals with its report and its pages."""
    name = run_release(marginals_request(tmp_path))
    make_report(Context.default(), "toy", name, [])
    write_site(Context.default())
    return f"toy/{name}"


@pytest.mark.slow
def test_commands_describe_marginals(
    release: str, capsys: pytest.CaptureFixture[str], home: Path, tmp_path: Path
) -> None:
    (listed,) = run_json("list", capsys=capsys)
    assert (listed["mechanism"], listed["normalisation"]) == ("marginals", None)
    assert "marginals" in run_command("list", capsys=capsys)[1]
    shown = run_json("show", release, capsys=capsys)
    assert shown["kind"] == "marginals"
    assert shown["verdict"] is None
    code, out, _ = run_command("show", release, capsys=capsys)
    assert code == 0
    assert f"sd {shown['calibration']['constants']['scale']:.3g}" in out
    assert "3 columns" in out
    (verified,) = run_json("verify", capsys=capsys)
    assert verified["unchecked"] == []
    assert "error" not in verified
    assert not [each for each in verified["checks"] if "matri" in each]
    assert any(each.startswith("report ") for each in verified["checks"])
    assert run_json("audit", "--output", tmp_path / "audit", capsys=capsys)["discrepancies"] == []
    (timeline,) = run_json("history", capsys=capsys)
    assert timeline["events"][-1]["mechanism"] == "marginals"
    code, out, err = run_command("estimate", release, "--json", capsys=capsys)
    assert code == 2  # before Prefect starts
    assert families.ESTIMATES.code in out + err
    # Other programs read every bin of every stage.
    frame = pd.read_parquet(home / "archive" / release / "release/marginals.parquet")
    assert list(frame.columns) == ["stage", "column", "lower", "upper", "level", "count", "sd"]
    assert frame["count"].dtype == "int64"
    assert frame["stage"].is_monotonic_increasing
    withdrawn = run_json("withdraw", release, "--reason", "a trial", "--yes", capsys=capsys)
    assert withdrawn["problems"] == []


@pytest.mark.slow
def test_marginals_are_not_compared(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    later = run_release(marginals_request(tmp_path, {"version": "v2"}))
    code, out, err = run_command("compare", release, f"toy/{later}", "--json", capsys=capsys)
    assert code == 2
    assert families.COMPARISON.code in out + err


@pytest.mark.slow
def test_packages_contain_histograms(
    release: str, tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(marginals_request(tmp_path, FROM))
    private = {"scaling": "private", "mechanism": GAUSSIAN, "version": "v3"}
    run_release(marginals_request(tmp_path, private))
    folder = tmp_path / "package"
    run_json("export", "--package", folder, capsys=capsys)
    with (folder / "releases.csv").open(encoding="utf-8", newline="") as stream:
        rows = {row["version"]: row for row in csv.DictReader(stream)}
    files = {
        version: (row["matrix"] != "", row["marginals"] != "") for version, row in rows.items()
    }
    assert files == {"v1": (False, True), "v2": (True, True), "v3": (True, True)}
    exported = folder / rows["v1"]["marginals"]
    published = home / "archive/toy/v1-r1/release/marginals.parquet"
    assert exported.read_bytes() == published.read_bytes()


@pytest.mark.slow
def test_pages_show_marginals(release: str, tmp_path: Path, home: Path) -> None:
    run_release(marginals_request(tmp_path, FROM))
    write_site(Context.default())
    folder = home / "archive" / release
    (report,) = folder.glob("reports/*/report.html")
    for page in (report, folder / "index.html"):
        text = page.read_text(encoding="utf-8")
        assert text.count("<h2>Marginals</h2>") == 1
        assert "<h2>The matrix</h2>" not in text
        assert "weight" in text
    matrix = (home / "archive/toy/v2-r1/index.html").read_text(encoding="utf-8")
    assert "<h2>The matrix</h2>" in matrix
    assert "<h2>Marginals</h2>" not in matrix
    assert "of release v1-r1" in make_report(Context.default(), "toy", "v2-r1", []).page


def write_and_seal(place: Path, facts: ReleaseManifest) -> None:
    """Give a release other facts."""
    for path in place.iterdir():
        path.chmod(0o644)
    write_descriptor(place, release_descriptor(place, facts))
    seal(place)


def taken(folder: Path) -> tuple[Context, Path]:
    """A release that takes its constants from a release of marginals."""
    run_release(marginals_request(folder))
    name = run_release(marginals_request(folder, FROM))
    context = Context.default()
    return context, context.archive.release("toy", name)


@pytest.mark.slow
def test_constants_of_another_release_are_recomputed(tmp_path: Path) -> None:
    context, place = taken(tmp_path)
    checks = verify_release(context.archive, "toy", place.parent.name, None).checks
    assert "constants: recomputed from the histograms of toy/v1-r1" in checks
    shutil.rmtree(place.parent.parent / "v1-r1")
    found = verify_release(context.archive, "toy", place.parent.name, None)
    assert [each.code for each in found.unchecked] == [families.NOT_CHECKED.code]


@pytest.mark.slow
@pytest.mark.parametrize("tampered", ["columns", "sha256"])
def test_forged_constants_of_another_release_are_found(tampered: str, tmp_path: Path) -> None:
    context, place = taken(tmp_path)
    facts = read_release(place).manifest
    weight, *others = facts.columns
    scaling = facts.scaling.model_copy(update={"sha256": "0" * 64})
    changes: dict[str, tuple[dict[str, Any], Family[Any]]] = {
        "columns": (
            {"columns": (weight.model_copy(update={"centre": 71.234}), *others)},
            families.CONTRADICTION,
        ),
        "sha256": ({"scaling": scaling}, families.REPLACED),
    }
    forged, problem = changes[tampered]
    write_and_seal(place, facts.model_copy(update=forged))
    with raises(problem):
        verify_release(context.archive, "toy", place.parent.name, None)


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["no histograms", "no stages"])
def test_marginals_without_histograms_are_refused(scaling: str, tmp_path: Path) -> None:
    context = Context.default()
    place = context.archive.release("toy", run_release(marginals_request(tmp_path)))
    facts = read_release(place).manifest
    stated = facts.scaling.model_copy(update={"stages": ()}) if scaling == "no stages" else None
    write_and_seal(place, facts.model_copy(update={"scaling": stated}))
    with raises(families.CONTENT):
        read_release(place)
