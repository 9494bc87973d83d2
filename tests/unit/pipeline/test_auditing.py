"""The audit has no findings in an intact home, and names every kind of tampering."""

from __future__ import annotations

import html.parser
import json
import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from gramercy.api.release import Release
from gramercy.archive.store.opening import archive_of, open_archive
from gramercy.common.home import Home
from gramercy.estimators.ridge import Ridge
from gramercy.ledger import Ledger
from gramercy.ledger.entry import Entry
from gramercy.ledger.journal import append
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.publish.attachments import make_estimate, withdraw
from gramercy.pipeline.verify.auditing import audit_facts, make_audit, write_audit
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.model import canonical_json
from gramercy.schemas.problem import Family
from gramercy.tasks.history import History
from tests.support.archives import update_listing
from tests.support.factories import (
    at_scale,
    contract_facts,
    edit_json,
    home_at,
    read_registered,
    run_command,
    run_json,
    run_pipeline,
    run_release,
    write_request,
)
from tests.support.ledgers import contract
from tests.support.pages import check_ids
from tests.support.problems import like, raises


def audit_findings() -> list[tuple[str, str]]:
    """Subject and code of each discrepancy."""
    return [(each.subject, each.code) for each in make_audit(Context.default()).discrepancies]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two releases, and an estimate from one of them; next to it is a copy."""
    folder = tmp_path_factory.mktemp("audited")
    with home_at(folder / "home") as home:
        run_release(write_request(folder))
        run_release(write_request(folder, request={"version": "v2"}))
        make_estimate(Context.default(), "toy", "v1-r1", Ridge())
        update_listing(Context.default(), "toy", "v1-r1")
    shutil.copytree(home, folder / "copy")
    return home


@pytest.fixture
def audited(published: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """This home, intact and in use; the ledger's file stays the same one."""
    monkeypatch.setenv("GRAMERCY_HOME", str(published))
    restore_ledger(published)
    for name in ("archive", "keys"):
        shutil.rmtree(published / name, ignore_errors=True)
        shutil.copytree(published.parent / "copy" / name, published / name)
    return Home.default()


def restore_ledger(home: Path) -> None:
    (home / "ledger.sqlite").write_bytes((home.parent / "copy/ledger.sqlite").read_bytes())


@pytest.mark.slow
def test_audit_of_an_intact_home_finds_nothing(home: Path, tmp_path: Path) -> None:
    run_pipeline(write_request(tmp_path))
    run_release(write_request(tmp_path, request={"version": "v2"}))
    update_listing(Context.default(), "toy", "v1-r1")
    audit = make_audit(Context.default())
    assert audit.discrepancies == []
    assert audit.notes == []
    assert audit.anchors == {"archive": 1, "releases": 2}
    assert [(each.id, each.bundle) for each in audit.releases] == [
        ("toy/v1-r1", "verified"),
        ("toy/v2-r1", "verified"),
    ]
    page = write_audit(Context.default(), audit, tmp_path / "audit").read_text()
    html.parser.HTMLParser().feed(page)
    assert "No discrepancies" in page
    assert "toy/v2-r1" in page
    assert "http" not in page.replace('http-equiv="', "")
    written = json.loads((tmp_path / "audit/audit.json").read_text())
    assert written == audit_facts(audit)
    # Neither the page nor the JSON contains internal facts of the ledger.
    fingerprint = Ledger.of(Home(home)).charges("toy")[0].fingerprint
    assert len(fingerprint) == 64
    assert fingerprint not in page + json.dumps(written)


def reseal(place: Path, change: Callable[[dict], None]) -> None:
    """Change a bundle, as an attacker with the steward's key could."""
    edit_json(place / "datapackage.json", change)
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        (place / name).unlink()
    archive_of(Home.default()).seal(place)


def forged_guarantee(home: Home) -> None:
    place = home.archive / "toy/v1-r1/release"
    reseal(place, lambda f: f["dp"]["guarantee"].update(mu=0.01))


def forged_reason(home: Home) -> None:
    withdraw(Context.default(), "toy", "v1-r1", "wrong file")
    update_listing(Context.default(), "toy", "v1-r1")
    place = home.archive / "toy/v1-r1/withdrawn"
    notice = place / "NOTICE.md"
    notice.chmod(0o644)
    notice.write_text(notice.read_text().replace("wrong file", "all is well"))


def lost_bundle(home: Home) -> None:
    shutil.rmtree(home.archive / "toy/v1-r1/release")


def foreign_bundle(home: Home) -> None:
    shutil.copytree(home.archive / "toy/v1-r1", home.archive / "toy/v1-r9")


def replaced_bundle(home: Home) -> None:
    shutil.rmtree(home.archive / "toy/v1-r1")
    shutil.copytree(home.archive / "toy/v2-r1", home.archive / "toy/v1-r1")


def damaged_estimate(home: Home) -> None:
    path = next(home.archive.glob("toy/v1-r1/estimates/*/precision.npy"))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])


def untrusted_signature(home: Home) -> None:
    place = home.archive / "toy/v1-r1/release"
    for name in ("SHA256SUMS", "SHA256SUMS.sig"):
        (place / name).unlink()
    open_archive(home.archive, keys=home.root / "stranger").seal(place)


def notice_without_a_withdrawal(home: Home) -> None:
    withdraw(Context.default(), "toy", "v2-r1", "wrong file")
    update_listing(Context.default(), "toy", "v1-r1")
    shutil.move(home.archive / "toy/v2-r1/withdrawn", home.archive / "toy/v1-r1/withdrawn")


def interrupted(home: Home) -> None:
    ledger = Ledger.of(home)
    ledger.charge(contract(**contract_facts()), "v3", "another", Guarantee(0.01), "")
    ledger.mark("toy", "v3-r1", ChargeState.DRAWN)


def spent_with_a_bundle(home: Home) -> None:
    interrupted(home)
    Ledger.of(home).mark("toy", "v3-r1", ChargeState.SPENT, reason="interrupted")
    shutil.copytree(home.archive / "toy/v2-r1", home.archive / "toy/v3-r1")


def ledger_behind_anchor_of_archive(home: Home) -> None:
    archive = archive_of(home)
    anchor = archive.anchor()
    archive.write_anchor(anchor.model_copy(update={"seq": anchor.seq + 5}))


def no_keys(home: Home) -> None:
    shutil.rmtree(home.keys)


def stray_files(home: Home) -> None:
    for name in ("truth.csv", "toy/truth.csv", "toy/v1-r1/truth.csv", "toy/v1-r1/more/x/truth.csv"):
        (home.archive / name).parent.mkdir(exist_ok=True, parents=True)
        (home.archive / name).write_text("1,2,3")
    (home.archive / "toy/v1-r1/reports").symlink_to(home.root)


def swapped_estimate(home: Home) -> None:
    shutil.copytree(home.archive / "toy/v1-r1/estimates", home.archive / "toy/v2-r1/estimates")


def swapped_releases(home: Home) -> None:
    first, second = (home.archive / f"toy/{name}" for name in ("v1-r1", "v2-r1"))
    other = home.root / "elsewhere"
    shutil.move(first, other)
    shutil.move(second, first)
    shutil.move(other, second)


def linked_file(home: Home) -> None:
    path = home.archive / "toy/v1-r1/release/second_moment.npy"
    shutil.move(path, home.root / "elsewhere.npy")
    path.symlink_to(home.root / "elsewhere.npy")


TAMPERING: dict[Callable[[Home], None], list[tuple[str, Family[Any]]]] = {
    forged_guarantee: [("toy/v1-r1", families.CHARGE)],
    forged_reason: [("toy/v1-r1", families.SEAL)],
    lost_bundle: [("toy/v1-r1", families.SEAL)],
    foreign_bundle: [("toy/v1-r9", families.UNKNOWN_BUNDLE)],
    replaced_bundle: [("toy/v1-r1", families.CONTRADICTION)],
    damaged_estimate: [("toy/v1-r1", families.SEAL)],
    untrusted_signature: [("toy/v1-r1", families.SIGNER)],
    notice_without_a_withdrawal: [
        ("toy/v1-r1", families.STATE),
        ("toy/v2-r1", families.STATE),
    ],
    interrupted: [("toy/v3-r1", families.STATE)],
    spent_with_a_bundle: [("toy/v3-r1", families.STATE)],
    no_keys: [("archive", families.NOT_CHECKED)],
    stray_files: [
        (name, families.UNKNOWN_BUNDLE)
        for name in (
            "toy/truth.csv",
            "toy/v1-r1/more/x/truth.csv",
            "toy/v1-r1/reports",
            "toy/v1-r1/truth.csv",
            "truth.csv",
        )
    ],
    swapped_estimate: [("toy/v2-r1", families.CONTRADICTION)],
    swapped_releases: [(f"toy/{name}", families.CONTRADICTION) for name in ("v1-r1", "v2-r1")],
    linked_file: [("toy/v1-r1", families.SEAL)],
    ledger_behind_anchor_of_archive: [("ledger", families.ENTRY)],
}
# The file that the discrepancy must name, by kind of tampering.
NAMED_FILES = {
    forged_guarantee: "datapackage.json",
    forged_reason: "NOTICE.md",
    damaged_estimate: "precision.npy",
    linked_file: "second_moment.npy",
    spent_with_a_bundle: "release",
}


@pytest.mark.slow
@pytest.mark.parametrize("tamper", TAMPERING, ids=lambda change: change.__name__)
def test_audit_names_each_discrepancy(
    tamper: Callable[[Home], None], audited: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper(audited)
    expected = [(subject, problem.code) for subject, problem in TAMPERING[tamper]]
    discrepancies = make_audit(Context.default()).discrepancies
    assert sorted((each.subject, each.code) for each in discrepancies) == expected
    assert NAMED_FILES.get(tamper, "") in str(discrepancies[0].problem.facts)
    code, out, _ = run_command("audit", capsys=capsys)
    assert code == 2
    assert all(subject in out for subject, _ in expected)


def execute_on_ledger(home: Path, *statements: str) -> None:
    """Execute statements on the ledger's database, as the owner of its file could."""
    with sqlite3.connect(home / "ledger.sqlite") as db:
        for name in ("no_update", "no_delete", "in_order"):
            db.execute(f"DROP TRIGGER IF EXISTS entries_{name}")
        db.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            db.execute(statement)
    db.close()


COLUMNS = [each.name for each in fields(Entry)]
VALUES = ["NULL", "''", "'x'", "x'00ff'", "-1", "0.5", "1e999"]


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
def test_audit_finds_changes_to_any_ledger_column(audited: Home, column: str) -> None:
    """The audit completes, and reports every changed value in any entry.

    The reduced run tries half of the values on each column.
    """
    home = audited.root
    nullable = column in {"dataset", "release", "window", "request", "pure", "mu", "delta0"}
    nullable |= column in {"epsilon", "delta"}
    values = [*VALUES, "'[]'", "'{}'"] if column == "facts" else VALUES
    tried = list(enumerate(values))
    for index, value in tried[COLUMNS.index(column) % at_scale(2, 1) :: at_scale(2, 1)]:
        if value == "NULL" and not nullable:
            continue
        seq = 2 + index // 2 % 2
        restore_ledger(home)
        is_same = f"SELECT {column} IS {value} FROM entries WHERE seq = {seq}"
        with sqlite3.connect(home / "ledger.sqlite") as db:
            unchanged = db.execute(is_same).fetchone() == (1,)
        db.close()
        if unchanged or (column == "seq" and value != "-1"):  # a primary key must be an integer
            continue
        execute_on_ledger(home, f"UPDATE entries SET {column} = {value} WHERE seq = {seq}")
        try:
            findings = audit_findings()
        except GramercyError as error:  # the ledger's identity is unknown
            findings = [("ledger", error.code)]
        assert findings, (column, value, seq)
    restore_ledger(home)
    assert audit_findings() == []


@pytest.mark.slow
@pytest.mark.parametrize("value", ["NULL", "x'00ff'"])
def test_data_set_that_is_not_text_is_found_among_others(audited: Home, value: str) -> None:
    Ledger.of(audited).charge(contract(id="ward"), "v1", "another", Guarantee(0.01), "")
    execute_on_ledger(audited.root, f"UPDATE entries SET dataset = {value} WHERE seq = 2")
    assert ("ledger", families.ENTRY.code) in audit_findings()


@pytest.mark.slow
def test_audit_finds_removed_ledger_entries(audited: Home) -> None:
    for seq in range(1, Ledger.of(audited).head().seq + 1):
        restore_ledger(audited.root)
        execute_on_ledger(audited.root, f"DELETE FROM entries WHERE seq = {seq}")
        if seq == 1:
            with raises(families.UNTRUSTED):
                audit_findings()
        else:
            assert audit_findings(), seq


FORGED: dict[str, Entry] = {
    "another window": Entry("reserved", "toy", "v3-r1", "9999", "q", 0.1, 0.0),
    "another per": Entry(
        "raised", "toy", epsilon=3.0, delta=1e-5, facts='{"per":"year","rows":40}'
    ),
    "without a data set": Entry("reserved", None, "v3-r1", "", "q", 0.1, 0.0),
    "a second opening": Entry("opened", facts='{"ledger":"x","place":"y"}'),
    "delta of one": Entry(
        "raised", "toy", epsilon=3.0, delta=0.9, facts='{"per":"lifetime","rows":40}'
    ),
    "a raise to a lower budget": Entry(
        "raised", "toy", epsilon=1.0, delta=1e-5, facts='{"per":"lifetime","rows":40}'
    ),
    "another turn": Entry("reserved", "toy", "v3-r7", "", "q", 0.1, 0.0),
    "an unknown kind": Entry("refunded", "toy", "v1-r1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FORGED)
def test_audit_finds_forged_ledger_entries(audited: Home, name: str) -> None:
    """Even if the forged entry continues the hash chain and states the correct total."""
    home, ledger, entry = audited.root, Ledger.of(audited), FORGED[name]
    last = ledger.head().seq
    if entry.kind == "reserved":
        total = ledger.statement("toy").charged.plus(entry.guarantee)
        facts = {"version": "v3", "turn": 3, "total": str(total), "fingerprint": "", "source": ""}
        entry = replace(entry, facts=canonical_json(facts))
    execute_on_ledger(home)
    with sqlite3.connect(home / "ledger.sqlite") as db:
        schema = "SELECT sql FROM sqlite_master WHERE name = 'entries'"
        ((made,),) = db.execute(schema)
        db.execute("PRAGMA writable_schema = ON")
        loose = made.replace("'opened', ", "'opened', 'refunded', ")
        db.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'entries'", (loose,))
    db.close()
    with Ledger.of(audited)._writing() as connection:
        append(connection, entry)
    discrepancies = make_audit(Context.default()).discrepancies
    assert last + 1 in [each.problem.facts.get("entry") for each in discrepancies]


@pytest.mark.slow
def test_audit_command(audited: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = run_json("audit", "--output", tmp_path / "here", capsys=capsys)
    assert facts["discrepancies"] == []
    assert len(facts["releases"]) == 2
    check_ids((tmp_path / "here/audit.html").read_text())
    code, out, _ = run_command("audit", capsys=capsys)
    assert code == 0
    assert "no discrepancies found" in out
    assert str(audited.audits) in out


def test_audit_compares_runs_with_the_ledger(audited: Home) -> None:
    history = History({"toy/v1-r1": ["calm-owl"], "toy/v8-r1": ["odd-fox"]}, ())
    audit = make_audit(Context.default(), history)
    assert [each.runs for each in audit.releases] == [("calm-owl",), ()]
    (found,) = audit.discrepancies
    assert found.subject == "toy/v8-r1"
    assert found.problem == like(families.UNKNOWN_BUNDLE, runs=("odd-fox",))
    assert audit.notes == [like(families.RECORDED, release="toy/v2-r1")]


@pytest.mark.slow
def test_rolled_back_home_is_found_in_prefect_history(
    tmp_path: Path, home: Path, prefect_server: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """The audit matches runs with releases, and detects a home restored from an older copy."""
    from gramercy.flows.audit import audit
    from gramercy.flows.release import release
    from gramercy.tasks.history import read_history

    # Other tests of this server publish from a data set "toy" of other ledgers.
    release(read_registered(write_request(tmp_path, id="restored")))
    shutil.copytree(home, tmp_path / "older")
    release(read_registered(write_request(tmp_path, id="restored", request={"version": "v2"})))
    history = read_history(Ledger.of(Home.default()))
    assert set(history.runs) == {"restored/v1-r1", "restored/v2-r1"}
    assert all(len(runs) == 1 for runs in history.runs.values())
    assert history.anchors[0] == Ledger.of(Home.default()).head()
    facts = run_json("audit", "--runs", capsys=capsys)
    assert (facts["discrepancies"], facts["notes"]) == ([], [])
    assert facts["anchors"] == {"archive": 1, "releases": 2, "history": 2}
    assert [each["runs"] for each in facts["releases"]] == [
        list(history.runs["restored/v1-r1"]),
        list(history.runs["restored/v2-r1"]),
    ]
    shutil.rmtree(home)
    (tmp_path / "older").rename(home)
    # The ledger was copied: its file is not the original one.
    assert [subject for subject, _ in audit_findings()] == ["ledger"]
    Ledger.of(Home.default()).move("restored from a backup")
    assert audit_findings() == []  # ledger and archive agree with each other
    with raises(families.UNTRUSTED):
        release(read_registered(write_request(tmp_path, id="restored", request={"version": "v3"})))
    with raises(families.DISCREPANCIES) as caught:
        audit()
    assert families.UNKNOWN_BUNDLE.code in caught.value.facts["discrepancies"]
    page = Path(caught.value.facts["page"])
    assert page.is_relative_to(home / "audits")
    assert families.ENTRY.code in page.with_suffix(".json").read_text()
    assert run_command("audit", "--runs", capsys=capsys)[0] == 2


@pytest.mark.slow
def test_withdrawal_needs_a_reason_and_refunds_nothing(
    audited: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    spent = Ledger.of(audited).statement("toy").spent
    refused = run_command("withdraw", "toy/v1-r1", "--yes", capsys=capsys)
    assert refused[0] == 2
    assert "reason" in refused[2]
    assert run_command("withdraw", "toy/v9-r1", "--reason", "x", "--yes", capsys=capsys)[0] == 2
    # Without a terminal, --yes is required.
    assert run_command("withdraw", "toy/v1-r1", "--reason", "x", capsys=capsys)[0] == 2
    facts = run_json("withdraw", "toy/v1-r1", "--reason", "wrong file", "--yes", capsys=capsys)
    assert facts["withdrawn"] == "wrong file"
    assert Release(archive_of(audited), "toy", "v1-r1").withdrawn == "wrong file"
    assert Ledger.of(audited).statement("toy").spent == spent
    assert audit_findings() == []
    again = run_json("withdraw", "toy/v1-r1", "--reason", "other", "--yes", capsys=capsys)
    assert again["withdrawn"] == "wrong file"  # the first reason is kept
    listed = run_json("list", capsys=capsys)
    assert [each["withdrawn"] for each in listed] == ["wrong file", None]
    assert "withdrawn: wrong file" in run_command("list", capsys=capsys)[1]
    assert "wrong file" in run_command("show", "toy/v1-r1", capsys=capsys)[1]
    assert "withdrawn" in run_command("budget", capsys=capsys)[1]


@pytest.mark.slow
def test_withdrawn_release_is_not_reused(tmp_path: Path, home: Path) -> None:
    request = write_request(tmp_path)
    run_release(request)
    withdraw(Context.default(), "toy", "v1-r1", "wrong file")
    with raises(families.SPENT, release="toy/v1-r1", reason="wrong file"):
        run_release(request)
    assert run_release(write_request(tmp_path, request={"new_charge": "v1-r1"})) == "v1-r2"
    update_listing(Context.default(), "toy", "v1-r1")
    assert audit_findings() == []


@pytest.mark.slow
def test_interrupted_withdrawal_can_be_finished(
    audited: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("gramercy.pipeline.publish.attachments.write_withdrawal", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            withdraw(Context.default(), "toy", "v1-r1", "wrong file")
    assert [subject for subject, _ in audit_findings()] == ["toy/v1-r1"]
    withdraw(Context.default(), "toy", "v1-r1", "another reason")
    update_listing(Context.default(), "toy", "v1-r1")
    assert audit_findings() == []
