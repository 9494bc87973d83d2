"""Forged reports are refused, even if they were sealed again; genuine ones are accepted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gramercy.application.reporting import report_manifest, report_page
from gramercy.archive.bundle import seal
from gramercy.archive.estimate_bundle import read_estimate
from gramercy.archive.opening import open_archive
from gramercy.archive.package import read_manifest, write_descriptor
from gramercy.archive.release_bundle import ReleaseBundle, read_release, report_descriptor
from gramercy.common.home import Home
from gramercy.reports.page_equality import same_figures, same_text
from gramercy.schemas.manifest import ReportManifest
from gramercy.schemas.problems.verification import (
    estimate_of_other_release,
    figures_not_compared,
    page_of_other_version,
)
from tests.support.factories import run_command, run_pipeline, run_release, write_request
from tests.support.problems import raises


def forge(place: Path, changes: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    """Change the files of a report, seal it again, and verify the release; return the output."""
    for file in place.iterdir():
        file.chmod(0o644)
    for name, change in changes.items():
        before = (place / name).read_text(encoding="utf-8")
        after = change(before)
        assert after != before
        (place / name).write_text(after, encoding="utf-8")
    if "report.html" in changes:  # a careful forger also updates the description
        manifest = read_manifest(place, ReportManifest)
        write_descriptor(place, report_descriptor(place, manifest))
    seal(place)
    # Without the ledger, which has the digest of the report.
    archive = Home.default().archive
    code, out, _ = run_command("verify", "--archive", archive, capsys=capsys)
    return f"{code} {out}"


def replace_text(old: str, new: str) -> Any:
    return lambda text: text.replace(old, new, 1)


def replace_pattern(pattern: str, new: str) -> Any:
    return lambda text: re.sub(pattern, new, text, count=1)


@pytest.mark.slow
def test_forged_reports_fail_verification(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = {f"dose 0.{i}": {"lower": -5.0, "upper": 5.0} for i in range(3)}
    noise = np.random.default_rng(2).normal(size=(4000, 3))
    noise[:, 1] += noise[:, 0]
    pd.DataFrame(noise, columns=list(columns)).to_csv(tmp_path / "table.csv", index=False)
    root = run_pipeline(write_request(tmp_path, rows=4000, columns=columns))
    assert run_command("verify", "--archive", root.parents[1], capsys=capsys)[0] == 0
    (place,) = (root / "reports").iterdir()
    shutil.copytree(place, tmp_path / "whole")
    page = place / "report.html"
    (edge,) = re.findall(r"stroke-width: ([0-9.]+)[^>]*stroke-linecap: round", page.read_text())[:1]
    forgeries: dict[str, dict[str, Any]] = {
        "epsilon": {"report.html": replace_text("ε = 1<", "ε = 0.1<")},
        "the attack": {"report.html": replace_text("54.8 %", "50.1 %")},
        "more words": {"report.html": replace_text("</main>", "<p>Certified.</p></main>")},
        "a text": {"report.html": replace_text("<svg", "<svg><text>safe</text>")},
        "a script": {"report.html": replace_text("</main>", "<script>1</script></main>")},
        "a label": {"report.html": replace_pattern(r">dose 0\.1</text>", ">dose 0.5</text>")},
        "a line": {"report.html": replace_text(f"stroke-width: {edge}", "stroke-width: 0.2")},
        "a place": {"report.html": replace_pattern(r'(<path d="M )[0-9]+', r"\g<1>9")},
        "a colour": {"report.html": replace_text("var(--accent)", "var(--warm)")},
        "the release": {"datapackage.json": replace_text('"v1-r1"', '"v9-r9"')},
        "its digest": {"datapackage.json": replace_pattern(r'"[0-9a-f]{64}"', f'"{"0" * 64}"')},
        "no estimates": {
            "datapackage.json": replace_pattern(r'"estimates": \{[^}]*\}', '"estimates": {}')
        },
    }
    for name, changes in forgeries.items():
        output = forge(place, changes, capsys)
        assert output.startswith("2 "), name
        assert "report" in output, name
        shutil.rmtree(place)
        shutil.copytree(tmp_path / "whole", place)
    # If the versions of the drawing libraries differ, only texts are compared.
    other = replace_text('"matplotlib": "', '"matplotlib": "9.')
    output = forge(place, {"datapackage.json": other}, capsys)
    assert output.startswith("0 ")
    assert figures_not_compared.code in output
    assert "report.html" not in output
    output = forge(place, {"report.html": replace_text("ε = 1<", "ε = 0.1<")}, capsys)
    assert output.startswith("2 ")
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "whole", place)
    # A page of another edition cannot be recomputed; verification reports this.
    other = replace_pattern(r'"report": "[0-9a-f]{16}"', '"report": "x"')
    output = forge(place, {"datapackage.json": other}, capsys)
    assert page_of_other_version.code in output


@pytest.mark.slow
def test_report_refuses_estimates_of_other_releases(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report may show only estimates of its own release."""
    root = run_pipeline(write_request(tmp_path))
    (place,) = (root / "reports").iterdir()
    (one, *_) = sorted(path.name for path in (root / "estimates").iterdir())
    shutil.copytree(root / "estimates", root / "other")
    changed = replace_text(f'"{one}"', f'"../other/{one}"')
    assert forge(place, {"datapackage.json": changed}, capsys).startswith("2 ")
    other = run_pipeline(write_request(tmp_path, request={"version": "v2"}))
    with raises(estimate_of_other_release):
        report_manifest(read_release(root / "release"), [read_estimate(other / "estimates" / one)])


def test_verification_draws_the_page_of_the_same_process_only_once(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page is drawn again for other bundles, and when others have replaced it."""
    drawn = []
    request = write_request(tmp_path)

    def page(release: ReleaseBundle, _: Any) -> str:
        drawn.append(release.manifest.release)
        return f"the page of {release.manifest.release}"

    monkeypatch.setattr("gramercy.application.reporting._draw", page)
    monkeypatch.setattr("gramercy.application.reporting._drawn", {})
    release = read_release(open_archive(home / "archive").release("toy", run_release(request)))
    facts = release.manifest
    bundles = [
        replace(release, sha256=f"{k}", manifest=facts.model_copy(update={"release": f"v{k}-r{k}"}))
        for k in range(1, 6)
    ]
    first, *others = bundles
    assert report_page(first, []) == report_page(first, []) == "the page of v1-r1"
    assert drawn == ["v1-r1"]
    assert [report_page(each, []) for each in others] == [
        f"the page of v{k}-r{k}" for k in (2, 3, 4, 5)
    ]
    assert report_page(first, []) == "the page of v1-r1"
    assert drawn == ["v1-r1", "v2-r2", "v3-r3", "v4-r4", "v5-r5", "v1-r1"]


@pytest.mark.slow
def test_another_process_draws_the_same_page(tmp_path: Path) -> None:
    """Whatever the order of its hashes: a process that made a report keeps its page."""
    root = run_pipeline(write_request(tmp_path))
    done = subprocess.run(
        [sys.executable, "-m", "gramercy", "verify", "--archive", root.parents[1], "--json"],
        env=dict(os.environ) | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (place,) = (root / "reports").iterdir()
    assert "text and figures agree with this release and its estimates" in done.stdout
    assert place.name in done.stdout


def test_charts_are_compared_to_half_a_pixel() -> None:
    page = (
        '<p>5</p><svg><path id="a1" d="M 1.2 -5.3" style="stroke-width: 0.7"/>'
        '<use xlink:href="#a1" xmlns:xlink="x"/><text>0.1</text></svg>'
    )
    assert same_text(page, page.replace("1.2", "7"))
    assert not same_text(page, page.replace("<p>5", "<p>6"))
    assert same_figures(page, page.replace("1.2", "1.4"))
    assert same_figures(page, page.replace("-5.3", "-5.31"))
    assert same_figures(page, page.replace("a1", "b2"))
    for old, new in (
        ("1.2", "2.2"),
        ("M", "L"),
        ("0.7", "0.2"),
        ("<text>0.1", "<text>0.4"),
        ('"#a1"', '"#b2"'),
        ("</svg>", "</svg><svg></svg>"),
        ("<use", "<x"),
    ):
        assert not same_figures(page, page.replace(old, new)), new
    image = '<svg><image href="data:image/png;base64,{}"/></svg>'
    red, blue = (image.format(png(colour)) for colour in ((255, 0, 0), (0, 0, 255)))
    assert same_figures(red, red)
    assert same_figures(red, image.format(png((254, 1, 0))))
    assert not same_figures(red, blue)


def png(colour: tuple[int, int, int]) -> str:
    import base64
    import io

    from PIL import Image

    stream = io.BytesIO()
    Image.new("RGB", (3, 3), colour).save(stream, "png")
    return base64.b64encode(stream.getvalue()).decode()
