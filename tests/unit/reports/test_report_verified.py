"""Forged reports are refused: by what they state, or by the digest in the ledger."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from gramercy.archive.bundles.bundle_kinds import read_estimate, read_release, report_descriptor
from gramercy.archive.bundles.package import read_manifest, write_descriptor
from gramercy.archive.seal.bundle import seal
from gramercy.common.home import Home
from gramercy.pipeline.publish.attachments import report_manifest
from gramercy.schemas import families
from gramercy.schemas.manifest import ReportManifest
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
    tmp_path: Path, home: Path, published_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = shutil.copytree(published_home, home) / "archive/toy/v1-r1"
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
    assert (code, families.SEAL.code in out) == (2, True)
    # A page that was sealed again is not the one that the ledger records.
    forge(place, "report.html", replace_text("ε = 1<", "ε = 0.1<"))
    code, out = verify(with_ledger=True)
    assert (code, families.REPLACED.code in out) == (2, True)
    # What contradicts the release is found without the ledger.
    for file, change, problem in (
        ("report.html", replace_text("</main>", "<script>1</script></main>"), families.DESCRIPTION),
        ("datapackage.json", replace_text('"v1-r1"', '"v9-r1"'), families.CONTRADICTION),
        (
            "datapackage.json",
            replace_pattern(r'"[0-9a-f]{64}"', f'"{"0" * 64}"'),
            families.CONTRADICTION,
        ),
        (
            "datapackage.json",
            replace_pattern(r'"estimates": \{[^}]*\}', '"estimates": {}'),
            families.CONTRADICTION,
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
    with raises(families.CONTRADICTION):
        report_manifest(read_release(root / "release"), [read_estimate(other / "estimates" / one)])
