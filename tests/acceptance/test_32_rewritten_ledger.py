"""A rewritten, restored or deleted ledger, and deleted artifacts: plain audit and verify tell.

The attacker may write to the ledger's database and to the archive, and has no key of the steward.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gramercy.archive.seal.anchors import write_anchor
from gramercy.archive.seal.signing import create_signing_key
from gramercy.archive.store.layout import ANCHORS
from gramercy.archive.store.opening import archive_of
from gramercy.archive.store.storage import FolderStore
from gramercy.common.home import Home
from gramercy.estimators.ridge import Ridge
from gramercy.ledger import Ledger
from gramercy.ledger.database import entries
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate, make_report
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import families
from gramercy.schemas.ledger_history import Anchor
from gramercy.schemas.problem import Family
from tests.support.archives import update_listing
from tests.support.factories import edit_json, run_command, run_release, write_request
from tests.support.ledgers import cheaper, remove_triggers, rewrite
from tests.support.problems import raises


@pytest.fixture
def published(tmp_path: Path, home: Path) -> Home:
    """A home with two releases; the first has an estimate and a report."""
    run_release(write_request(tmp_path))
    run_release(write_request(tmp_path, request={"version": "v2"}))
    context = Context.default()
    name = make_estimate(context, "toy", "v1-r1", Ridge()).manifest.estimate
    make_report(context, "toy", "v1-r1", [name])
    update_listing(context, "toy", "v1-r1")
    return Home.default()


def found(home: Home, capsys: pytest.CaptureFixture[str]) -> set[str]:
    """The codes of an audit's discrepancies; 'verify' has to find something as well."""
    problems = [each.problem for each in make_audit(Context(home)).discrepancies]
    codes = {str(each.facts.get("first", each.code)).partition(":")[0] for each in problems}
    code, out, _ = run_command("verify", capsys=capsys)
    assert (code == 2) == ("✗" in out)
    assert (code == 2) == bool(codes)
    return codes


def remove_anchors(home: Home) -> None:
    shutil.rmtree(home.archive / ANCHORS)


def rewritten_with_anchor_kept(home: Home) -> None:
    rewrite(Ledger.of(home), cheaper("v1-r1"))


def rewritten_with_anchor_unsigned(home: Home) -> None:
    ledger = Ledger.of(home)
    rewrite(ledger, cheaper("v1-r1"))
    signed = FolderStore(home.archive)
    remove_anchors(home)
    head = ledger.head()
    write_anchor(signed, head, home.keys)
    (path,) = (home.archive / ANCHORS).rglob("*.json")
    path.write_bytes(path.read_bytes().split(b"\n")[0])


def rewritten_with_anchor_of_another_key(home: Home) -> None:
    ledger = Ledger.of(home)
    rewrite(ledger, cheaper("v1-r1"))
    remove_anchors(home)
    create_signing_key(home.root / "attacker")
    write_anchor(FolderStore(home.archive), ledger.head(), home.root / "attacker")


def rewritten_with_an_older_anchor(home: Home) -> None:
    """The attacker has kept a signed anchor of the entry before the changed one."""
    ledger = Ledger.of(home)
    before, *_ = (each for each in ledger.entries() if each.release == "v2-r1")
    remove_anchors(home)
    kept = Anchor(ledger=ledger.head().ledger, seq=before.seq - 1, hash=before.previous)
    write_anchor(FolderStore(home.archive), kept, home.keys)
    rewrite(ledger, cheaper("v2-r1"))


def without_last_entries(home: Home) -> None:
    ledger = Ledger.of(home)
    last = ledger.head().seq
    rewrite(ledger, lambda entry: entry if entry.seq < last else None)


def without_estimate(home: Home) -> None:
    shutil.rmtree(home.archive / "toy/v1-r1/estimates")


def without_report(home: Home) -> None:
    shutil.rmtree(home.archive / "toy/v1-r1/reports")


def without_estimate_and_report(home: Home) -> None:
    without_estimate(home)
    without_report(home)


def estimate_replaced(home: Home) -> None:
    """By another bundle of the steward, such as an earlier one."""
    (place,) = (home.archive / "toy/v1-r1/estimates").iterdir()
    edit_json(place / "datapackage.json", lambda facts: facts["dp"]["software"].update(numpy="1.0"))
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        (place / name).unlink()
    archive_of(home).seal(place)


CHANGES: dict[Callable[[Home], None], Family[Any]] = {
    rewritten_with_anchor_kept: families.ENTRY,
    rewritten_with_anchor_unsigned: families.ANCHOR,
    rewritten_with_anchor_of_another_key: families.SIGNER,
    rewritten_with_an_older_anchor: families.ENTRY,
    remove_anchors: families.UNTRUSTED,
    without_last_entries: families.ENTRY,
    without_estimate: families.REPLACED,
    without_report: families.REPLACED,
    without_estimate_and_report: families.REPLACED,
    estimate_replaced: families.REPLACED,
}


@pytest.mark.slow
def test_every_change_is_found(
    published: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert found(published, capsys) == set()
    kept = tmp_path / "kept"
    shutil.copytree(published.root, kept, symlinks=True)
    for change, problem in CHANGES.items():
        change(published)
        codes = found(published, capsys)
        assert problem.code in codes, (change.__name__, codes)
        _restore(published, kept)
    assert found(published, capsys) == set()


def _restore(home: Home, kept: Path) -> None:
    """Restore the files of a home; the ledger's file stays the same one."""
    (home.root / "ledger.sqlite").write_bytes((kept / "ledger.sqlite").read_bytes())
    shutil.rmtree(home.archive)
    shutil.copytree(kept / "archive", home.archive)


def test_edit_of_all_times_is_one_problem(
    published: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    of_ledger = Ledger.of(published)
    last = of_ledger.head().seq
    with of_ledger._writing() as db:
        remove_triggers(db)
        db.execute(sa.update(entries).where(entries.c.seq > 2).values(at="2020-01-01T00:00:00"))
    (found,) = make_audit(Context(published)).discrepancies
    assert found.code == families.ENTRY.code
    stated = {
        "count": last - 2,
        "entry": 3,
        "last": last,
        "first": str(found.problem.facts["first"]),
    }
    assert found.problem.facts == stated
    assert families.ENTRY.code in stated["first"]
    code, out, _ = run_command("verify", capsys=capsys)
    assert (code, out.count("✗")) == (2, 1)


@pytest.mark.slow
def test_releases_are_refused_on_a_rewritten_ledger(published: Home, tmp_path: Path) -> None:
    """Even if the attacker has an older signed anchor: the newest release states a later head."""
    rewritten_with_an_older_anchor(published)
    with raises(families.UNTRUSTED, witness="toy/v2-r1"):
        run_release(write_request(tmp_path, request={"version": "v3"}))
    assert len(Ledger.of(published).charges("toy")) == 2


@pytest.mark.slow
def test_verify_misses_the_ledger(published: Home, capsys: pytest.CaptureFixture[str]) -> None:
    published.ledger.unlink()
    code, out, _ = run_command("verify", capsys=capsys)
    assert code == 2
    assert families.NO_LEDGER.code in out or str(published.ledger) in out
    # An analyst has neither ledger nor key: the charge is named as unchecked.
    shutil.rmtree(published.keys)
    code, out, _ = run_command("verify", capsys=capsys)
    assert code == 0
    assert f"? {families.NOT_CHECKED.code}: " in " ".join(out.split())


@pytest.mark.slow
def test_witness_remembers_what_ledger_and_archive_forgot(
    tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ledger and archive are restored together from an earlier moment."""
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", str(tmp_path / "witness"))
    run_release(write_request(tmp_path))
    of_home = Home.default()
    update_listing(Context.default(), "toy", "v1-r1")
    kept = tmp_path / "kept"
    shutil.copytree(home, kept)
    run_release(write_request(tmp_path, request={"version": "v2"}))
    update_listing(Context.default(), "toy", "v2-r1")
    assert make_audit(Context(of_home)).anchors == {"archive": 1, "releases": 2, "witness": 4}
    assert found(of_home, capsys) == set()
    _restore(of_home, kept)
    assert found(of_home, capsys) == {families.ENTRY.code}
    with raises(families.UNTRUSTED, witness=str(tmp_path / "witness")):
        run_release(write_request(tmp_path, request={"version": "v3"}))
    # Nothing else remembers.
    monkeypatch.delenv("GRAMERCY_WITNESS_URL")
    assert found(of_home, capsys) == set()


@pytest.mark.slow
def test_unreachable_witness_refuses_before_the_charge(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GRAMERCY_WITNESS_URL", str(tmp_path / "file/witness"))
    with raises(families.ARCHIVE_DISK):
        run_release(write_request(tmp_path))
    assert Ledger.of(Home.default()).datasets() == []


def test_derived_digests_are_recorded_once(published: Home) -> None:
    context = Context(published)
    of_ledger = Ledger.of(published)
    recorded = of_ledger.derived("toy", "v1-r1")
    assert [kind for kind, _ in recorded] == ["estimate", "report"]
    seq = of_ledger.head().seq
    make_estimate(context, "toy", "v1-r1", Ridge())
    assert of_ledger.head().seq == seq
    # An estimate that was deleted is computed again, and recorded again.
    without_estimate(published)
    made = make_estimate(context, "toy", "v1-r1", Ridge())
    assert of_ledger.derived("toy", "v1-r1")["estimate", made.manifest.estimate] == made.sha256
