"""Forged reports are refused: by what they state, or by the digest in the ledger."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gramercy.application.reporting import report_manifest
from gramercy.archive.bundle import seal
from gramercy.archive.estimate_bundle import read_estimate
from gramercy.archive.opening import open_archive
from gramercy.archive.package import read_manifest, write_descriptor
from gramercy.archive.release_bundle import read_release, report_descriptor
from gramercy.common.home import Home
from gramercy.schemas.manifest import ReportManifest
from gramercy.schemas.problems.bundle import active_content, file_changed
from gramercy.schemas.problems.verification import (
    estimate_of_other_release,
    fact_contradicts,
    folder_mismatch,
    recorded_bundle_replaced,
)
from tests.support.factories import run_command, run_pipeline, write_request
from tests.support.problems import raises

Change = Callable[[str], str]


def replace_text(old: str, new: str) -> Change:
    return lambda text: text.replace(old, new, 1)


def replace_pattern(pattern: str, new: str) -> Change:
    return lambda text: re.sub(pattern, new, text, count=1)


def change_file(path: Path, change: Change) -> None:
    path.chmod(0o644)
    before = path.read_text(encoding="utf-8")
    after = change(before)
    assert after != before
    path.write_text(after, encoding="utf-8")


def forge(place: Path, file: str, change: Change) -> None:
    """Change a file, and seal the report again with the steward's own key."""
    for path in place.iterdir():
        path.chmod(0o644)
    change_file(place / file, change)
    if file == "report.html":  # a careful forger also updates the description
        manifest = read_manifest(place, ReportManifest)
        write_descriptor(place, report_descriptor(place, manifest))
    seal(place)


@pytest.mark.slow
def test_forged_reports_fail_verification(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = run_pipeline(write_request(tmp_path))
    (place,) = (root / "reports").iterdir()
    shutil.copytree(place, tmp_path / "whole")

    def verify(*, with_ledger: bool) -> tuple[int, str]:
        options = () if with_ledger else ("--archive", Home.default().archive)
        code, out, _ = run_command("verify", *options, capsys=capsys)
        shutil.rmtree(place)
        shutil.copytree(tmp_path / "whole", place)
        return code, out

    assert verify(with_ledger=False)[0] == 0
    change_file(place / "report.html", replace_text("ε = 1<", "ε = 0.1<"))
    code, out = verify(with_ledger=False)
    assert (code, file_changed.code in out) == (2, True)
    # A page that was sealed again is not the one that the ledger records.
    forge(place, "report.html", replace_text("ε = 1<", "ε = 0.1<"))
    code, out = verify(with_ledger=True)
    assert (code, recorded_bundle_replaced.code in out) == (2, True)
    # What contradicts the release is found without the ledger.
    for file, change, problem in (
        ("report.html", replace_text("</main>", "<script>1</script></main>"), active_content),
        ("datapackage.json", replace_text('"v1-r1"', '"v9-r9"'), fact_contradicts),
        (
            "datapackage.json",
            replace_pattern(r'"[0-9a-f]{64}"', f'"{"0" * 64}"'),
            folder_mismatch,
        ),
        (
            "datapackage.json",
            replace_pattern(r'"estimates": \{[^}]*\}', '"estimates": {}'),
            fact_contradicts,
        ),
    ):
        forge(place, file, change)
        code, out = verify(with_ledger=False)
        assert (code, problem.code in out) == (2, True), out


@pytest.mark.slow
def test_report_refuses_estimates_of_other_releases(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A report may show only estimates of its own release."""
    root = run_pipeline(write_request(tmp_path))
    (place,) = (root / "reports").iterdir()
    (one, *_) = sorted(path.name for path in (root / "estimates").iterdir())
    shutil.copytree(root / "estimates", root / "other")
    forge(place, "datapackage.json", replace_text(f'"{one}"', f'"../other/{one}"'))
    assert run_command("verify", "--archive", Home.default().archive, capsys=capsys)[0] == 2
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
