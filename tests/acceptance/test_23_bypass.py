"""Attempts to bypass the budget are refused or detected."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from gramercy.archive.store.opening import open_archive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError, UntrustedLedger
from tests.support.archives import update_listing
from tests.support.databases import ledger_location
from tests.support.factories import (
    MECHANISM,
    contract_facts,
    read_registered,
    run_command,
    run_release,
    write_request,
    write_table,
)
from tests.support.problems import raises
from tests.support.processes import processes

BUDGET = {"epsilon": 1.2, "delta": 1e-6}  # enough for one release, not for two
COLUMNS = contract_facts()["columns"]


def charges() -> list[tuple[str, str]]:
    ledger = Ledger.of(Home.default())
    entries = ledger.charges("toy") if ledger.datasets() else ()
    return [(c.release, c.state) for c in entries]


def request_for(folder: Path, version: str = "v1", **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    return write_request(folder, request={"version": version}, **{"budget": BUDGET} | changes)


class LedgerDatabase:
    """The database of a ledger, with changes that its owner can make."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.url = sa.make_url(home.ledger_url) if home.ledger_url else None

    def save(self, name: str) -> None:
        """Save a copy, byte for byte."""
        if self.url is None:
            shutil.copy(self.home.ledger, self.home.root / name)
        else:
            self._run(f"CREATE DATABASE {self.url.database}_{name} TEMPLATE {self.url.database}")

    def restore(self, name: str) -> None:
        """Restore a copy in place. A file keeps its identity: only its content is replaced."""
        if self.url is None:
            shutil.copyfile(self.home.root / name, self.home.ledger)
        else:
            self.lose()
            self._run(f"CREATE DATABASE {self.url.database} TEMPLATE {self.url.database}_{name}")

    def lose(self) -> None:
        if self.url is None:
            self.home.ledger.unlink()
        else:
            self._run(f"DROP DATABASE {self.url.database}")

    def empty(self) -> None:
        """Delete the database."""
        self.lose()
        if self.url is None:
            self.home.ledger.touch()
        else:
            self._run(f"CREATE DATABASE {self.url.database}")

    def use(self, name: str, patch: pytest.MonkeyPatch) -> None:
        """Use a copy at its own location."""
        if self.url is None:
            elsewhere = self.home.root.with_name("elsewhere")
            shutil.copytree(self.home.root, elsewhere)
            shutil.copy(self.home.root / name, elsewhere / "ledger.sqlite")
            patch.setenv("GRAMERCY_HOME", str(elsewhere))
        else:
            copy = self.url.set(database=f"{self.url.database}_{name}")
            patch.setenv("GRAMERCY_LEDGER_URL", copy.render_as_string(hide_password=False))

    def _run(self, statement: str) -> None:
        assert self.url is not None
        server = self.url.set(database="postgres").render_as_string(hide_password=False)
        with psycopg.connect(server, autocommit=True) as db:
            db.execute(statement)


@pytest.fixture
def database(any_home: Home) -> LedgerDatabase:
    return LedgerDatabase(any_home)


CELLS = {"mechanism": MECHANISM | {"name": "rows"}, "normalisation": {"kind": "box"}}
# Changes of the contract and of the request, and the term that is named.
TERMS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"budget": {"epsilon": 9.0, "delta": 1e-6}}, {}, "budget.epsilon"),
    ({"budget": {"epsilon": 1.2, "delta": 1e-2}}, {}, "budget.delta"),
    (
        {"budget": BUDGET | {"per": "year"}, "source": "{year}.csv"},
        {"version": "2026"},
        "budget.per",
    ),
    ({"neighbours": "add-remove"}, {}, "neighbours"),
    ({"privacy_unit": "cell"}, CELLS, "privacy_unit"),
    ({"columns": {"c0": {"lower": -5.0, "upper": 5.0}}}, {}, "columns.c1"),
    ({"columns": COLUMNS | {"c2": {"lower": -5.0, "upper": 5.5}}}, {}, "columns.c2.upper"),
    ({"columns": dict(reversed(COLUMNS.items()))}, {}, "columns"),
    ({"intercept": True}, {}, "intercept"),
]


def test_edited_contract_is_refused(
    tmp_path: Path, any_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_release(request_for(tmp_path)) == "v1-r1"
    for changes, request, term in TERMS:
        edited = write_request(tmp_path, request=request, **{"budget": BUDGET} | changes)
        with raises(families.TERMS, dataset="toy") as refused:
            run_release(edited)
        assert term in refused.value.facts["terms"]
        code, _, err = run_command("release", edited, "--yes", capsys=capsys)
        assert code == 2
        assert families.TERMS.code in err
    yearly = {"budget": BUDGET | {"per": "year"}, "source": "{year}.csv"}
    with raises(families.PERIOD, version="1"):
        run_release(write_request(tmp_path, request={"version": "1"}, **yearly))
    assert charges() == [("v1-r1", "published")]


def test_contract_in_another_folder_shares_the_budget(tmp_path: Path, any_home: Home) -> None:
    """Another source, title or row count is still the same data set, by its id."""
    assert run_release(request_for(tmp_path)) == "v1-r1"
    elsewhere = tmp_path / "elsewhere"
    assert (
        run_release(request_for(elsewhere, title="Another", curator="Another curator")) == "v1-r1"
    )
    write_table(elsewhere / "other.csv", rows=50, seed=3)
    for version in ("v2", "V1", "v1.0", "v01"):  # other labels, same budget
        with raises(families.EXCEEDED, budget="toy"):
            run_release(request_for(elsewhere, version, source="other.csv", rows=50))
    assert charges() == [("v1-r1", "published")]


SAME: list[dict[str, Any]] = [
    {"estimates": []},
    {"estimates": [{"name": "ridge", "penalty": 0.25}]},
    {"timezone": "Asia/Kathmandu"},
    {"folds": 1},
    {"normalisation": {"kind": "unit"}},
    {"mechanism": MECHANISM | {"calibration": "exact", "arithmetic": "exact", "epsilon": 1}},
    {"new_charge": "v1-r1"},
    {"new_charge": "v9-r1"},
]


def test_equivalent_requests_are_replayed(tmp_path: Path, any_home: Home) -> None:
    assert run_release(write_request(tmp_path, budget=BUDGET)) == "v1-r1"
    (any_home.contracts).mkdir(parents=True)
    text = (tmp_path / "contract.yaml").read_text()
    (any_home.contracts / "toy.yaml").write_text(text)
    for change in [*SAME, {"dataset": "toy"}]:
        assert run_release(write_request(tmp_path, request=change, budget=BUDGET)) == "v1-r1"
    assert charges() == [("v1-r1", "published")]


def test_budget_of_another_year_needs_another_file(tmp_path: Path, any_home: Home) -> None:
    """Another year has its own budget and its own file: last year's rows cannot be relabelled."""
    yearly = {"source": "t-{year}.csv", "budget": BUDGET | {"per": "year"}}
    write_table(tmp_path / "t-2025.csv")
    assert run_release(request_for(tmp_path, "2025", **yearly)) == "2025-r1"
    for version in ("2025-W01", "2025.2", "2025x"):
        with raises(families.EXCEEDED, budget="toy, data of 2025"):
            run_release(request_for(tmp_path, version, **yearly))
    with raises(families.SOURCE, source=str(tmp_path / "t-2026.csv")):
        run_release(request_for(tmp_path, "2026", **yearly))
    for version in ("v2025", "25", "20255"):
        with raises(families.PERIOD, version=version):
            run_release(request_for(tmp_path, version, **yearly))
    with raises(families.VALUE, key="version"):
        run_release(request_for(tmp_path, "２０２６", **yearly))
    assert charges() == [("2025-r1", "published")]


def test_other_paths_to_the_same_home_share_the_budget(
    tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_for(tmp_path)
    assert run_release(request) == "v1-r1"
    (tmp_path / "link").symlink_to(any_home.root)
    (tmp_path / "deep").mkdir()
    for path in (tmp_path / "link", tmp_path / "deep" / ".." / "home", "./home", "deep/../link/"):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GRAMERCY_HOME", str(path))
        assert run_release(request) == "v1-r1"
        with raises(families.EXCEEDED):
            run_release(request_for(tmp_path / "other", "v2"))
    assert charges() == [("v1-r1", "published")]


def test_working_directory_does_not_matter(
    tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    request_for(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert run_release(Path("request.yaml")) == "v1-r1"
    (tmp_path / "deep").mkdir()
    monkeypatch.chdir(tmp_path / "deep")
    assert run_release(Path("../request.yaml")) == "v1-r1"
    assert charges() == [("v1-r1", "published")]


def test_copied_ledger_is_refused(
    tmp_path: Path,
    database: LedgerDatabase,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_release(request_for(tmp_path))
    update_listing(Context.default(), "toy", "v1-r1")
    database.save("copy")
    database.use("copy", monkeypatch)
    for version in ("v1", "v2"):
        with raises(families.UNTRUSTED):
            run_release(request_for(tmp_path, version))
        code, _, err = run_command("release", tmp_path / "request.yaml", "--yes", capsys=capsys)
        assert code == 2
        assert families.UNTRUSTED.code in err
    assert charges() == [("v1-r1", "published")]
    audit = make_audit(Context.default())
    assert families.UNTRUSTED.code in [each.problem.code for each in audit.discrepancies]
    # An auditor reads a copy on purpose.
    audit = make_audit(Context.default(), of_copy=True)
    assert audit.discrepancies == []
    assert families.RECORDED.code in [getattr(each, "code", "") for each in audit.notes]
    for command in ("audit", "verify"):
        assert run_command(command, capsys=capsys)[0] == 2
        code, out, _ = run_command(command, "--copy", capsys=capsys)
        assert code == 0, out
        assert families.RECORDED.code in out


def test_hard_linked_ledger_is_refused(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a hard link the ledger has another archive, so it is not charged."""
    run_release(request_for(tmp_path))
    linked_home = tmp_path / "other-home"
    linked_home.mkdir()
    os.link(home / "ledger.sqlite", linked_home / "ledger.sqlite")
    monkeypatch.setenv("GRAMERCY_HOME", str(linked_home))
    with raises(families.UNTRUSTED):
        run_release(request_for(tmp_path, "v2"))
    assert charges() == [("v1-r1", "published")]


LOSSES: dict[str, Callable[[LedgerDatabase], None]] = {
    "restored from before": lambda database: database.restore("older"),
    "restored from before anything": lambda database: database.restore("empty"),
    "lost": LedgerDatabase.lose,
    "emptied": LedgerDatabase.empty,
}


@pytest.mark.parametrize("loss", list(LOSSES))
def test_rolled_back_ledger_is_refused(loss: str, tmp_path: Path, database: LedgerDatabase) -> None:
    """The anchors of the archive reveal it, or else the releases of the archive."""
    large = {"budget": {"epsilon": 2.2, "delta": 1e-6}}
    archive = open_archive(database.home.archive)
    Ledger.of(database.home)
    database.save("empty")
    run_release(request_for(tmp_path, "v1", **large))
    database.save("older")
    run_release(request_for(tmp_path, "v2", **large))
    published = archive.releases()
    LOSSES[loss](database)
    for _ in ("with anchors", "without"):
        for version in ("v1", "v2", "v3"):
            request = request_for(tmp_path, version, **large)
            if loss == "lost" and database.url is not None:  # Gramercy does not create databases
                with raises(families.LEDGER):
                    run_release(request)
                continue
            with pytest.raises(UntrustedLedger) as refused:
                run_release(request)
            assert refused.value.code == families.UNTRUSTED.code
            assert len(charges()) == (1 if loss == "restored from before" else 0)
        if loss != "lost" or database.url is None:
            assert make_audit(Context.default()).discrepancies
        shutil.rmtree(database.home.archive / ".ledger", ignore_errors=True)
    assert archive.releases() == published


def test_missing_archive_is_refused(
    tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_release(request_for(tmp_path))
    away = any_home.archive.rename(tmp_path / "away")
    for version in ("v1", "v2"):
        with raises(families.UNTRUSTED, witness="the archive"):
            run_release(request_for(tmp_path, version))
    any_home.archive.mkdir()
    with raises(families.UNTRUSTED):
        run_release(request_for(tmp_path))
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(tmp_path / "new"))
    with raises(families.UNTRUSTED):
        run_release(request_for(tmp_path))
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(away))
    assert run_release(request_for(tmp_path)) == "v1-r1"
    # If only a release is missing, it is not drawn again.
    shutil.rmtree(away / "toy")
    with raises(families.SEAL):
        run_release(request_for(tmp_path))
    assert charges() == [("v1-r1", "published")]


def test_moved_ledger_keeps_its_charges(tmp_path: Path, any_home: Home) -> None:
    """A ledger that the steward declares as moved keeps its charges."""
    run_release(request_for(tmp_path))
    shutil.rmtree(any_home.archive)
    Ledger.of(any_home).move("the disk is gone")
    with raises(families.SEAL):
        run_release(request_for(tmp_path))
    with raises(families.EXCEEDED):
        run_release(request_for(tmp_path, "v2"))
    assert charges() == [("v1-r1", "published")]


def release_of_home(home: Path, request: Path) -> str:
    """Publish with another home; return the release, or the type of the error."""
    os.environ["GRAMERCY_HOME"] = str(home)
    try:
        return run_release(request)
    except GramercyError as error:
        return type(error).__name__


def test_two_homes_share_one_ledger_budget(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", str(ledger_location("postgresql", home)))
    homes = [tmp_path / "one", tmp_path / "two"]
    requests = [
        request_for(tmp_path / f"asked-{k}", version) for k, version in enumerate(("v1", "v2"))
    ]
    with processes(2) as pool:
        answers = list(pool.map(release_of_home, homes, requests))
    published = [answer for answer in answers if answer.startswith("v")]
    (refusal,) = [answer for answer in answers if not answer.startswith("v")]
    assert len(published) == 1
    assert refusal.startswith(("UntrustedLedger", "BudgetRefused"))
    assert charges() == [(published[0], "published")]


@pytest.mark.usefixtures("prefect_server")
def test_new_charge_must_name_the_spent_release(
    tmp_path: Path,
    any_home: Home,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as failing:
        failing.setattr("gramercy.pipeline.publish.drawing.denoise", broken)
        with pytest.raises(GramercyError):
            run_release(request_for(tmp_path))
    for release in ("v1-r2", "v2-r1", "V1-R1", "v1-r01"):
        with raises(families.SPENT, release="toy/v1-r1"):
            run_release(write_request(tmp_path, request={"new_charge": release}, budget=BUDGET))
    again = write_request(tmp_path, request={"new_charge": "v1-r1"}, budget=BUDGET)
    with raises(families.EXCEEDED):
        run_release(again)
    code, _, err = run_command(
        "release", request_for(tmp_path), "--yes", "--new-charge", capsys=capsys
    )
    assert code == 2
    assert families.EXCEEDED.code in err
    assert charges() == [("v1-r1", "spent")]


def test_budget_is_raised_only_with_a_reason(
    tmp_path: Path, any_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(request_for(tmp_path))
    for words in (
        ("--raise", "9", "1e-6"),
        ("--raise", "9", "1e-6", "--reason", " "),
        ("--raise", "1.1", "1e-6", "--reason", "less"),
        ("--raise", "9", "0.5", "--reason", "large delta"),
        ("--raise", "nan", "1e-6", "--reason", "none"),
        ("--raise", "inf", "1e-6", "--reason", "all"),
        ("--raise", "9", "-1", "--reason", "negative"),
        ("--moved",),
    ):
        assert run_command("budget", "toy", *words, capsys=capsys)[0] == 2
    with raises(families.EXCEEDED):
        run_release(request_for(tmp_path, "v2"))


@pytest.mark.usefixtures("prefect_server")
def test_rollback_of_ledger_and_archive_is_found_by_prefect_history(
    tmp_path: Path, database: LedgerDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a rollback of both, ledger and archive agree: only Prefect's history reveals it."""
    from gramercy.flows.release import release

    large = {"budget": {"epsilon": 2.2, "delta": 1e-6}}
    archive, saved = database.home.archive, tmp_path / "saved"
    release(read_registered(request_for(tmp_path, "v1", **large)))
    database.save("older")
    shutil.copytree(archive, saved)
    release(read_registered(request_for(tmp_path, "v2", **large)))
    database.restore("older")
    shutil.rmtree(archive)
    saved.rename(archive)
    for version in ("v1", "v2", "v3"):
        request = request_for(tmp_path, version, **large)
        with raises(families.UNTRUSTED, witness="Prefect's history"):
            release(read_registered(request))
    code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 2
    assert families.UNTRUSTED.code in err
    assert charges() == [("v1-r1", "published")]
