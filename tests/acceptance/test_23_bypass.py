"""Ways around the budget: each is refused or detected."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from gramercy.application.auditing import make_audit
from gramercy.application.context import Context
from gramercy.application.yaml_files import read_request
from gramercy.archive.local import LocalArchive
from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.schemas.errors import (
    BudgetRefused,
    BundleError,
    GramercyError,
    LedgerError,
    RequestError,
    SpentFailure,
    TableError,
    TermsChanged,
    UntrustedLedger,
)
from tests.support.factories import (
    MECHANISM,
    contract_facts,
    run_command,
    run_release,
    write_request,
    write_table,
)

ROOT = Path(__file__).parents[2]
BUDGET = {"epsilon": 1.2, "delta": 1e-6}  # holds one release, and not two
COLUMNS = contract_facts()["columns"]


def charges() -> list[tuple[str, str]]:
    ledger = Ledger.of(Home.default())
    known = ledger.charges("toy") if ledger.datasets() else ()
    return [(c.release, c.state) for c in known]


def request_for(folder: Path, version: str = "v1", **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    return write_request(folder, request={"version": version}, **{"budget": BUDGET} | changes)


class LedgerDatabase:
    """The ledger's database in the hands of its owner."""

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
        """Restore a copy in place: of a file its content alone, so that it stays the same file."""
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
def books(any_home: Home) -> LedgerDatabase:
    return LedgerDatabase(any_home)


CELLS = {"mechanism": MECHANISM | {"name": "rows"}, "normalisation": {"kind": "box"}}
TERMS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"budget": {"epsilon": 9.0, "delta": 1e-6}}, {}, r"budget\.epsilon"),
    ({"budget": {"epsilon": 1.2, "delta": 1e-2}}, {}, r"budget\.delta"),
    ({"budget": BUDGET | {"per": "year"}, "source": "{year}.csv"}, {"version": "1"}, r"a year"),
    ({"budget": BUDGET | {"per": "year"}, "source": "{year}.csv"}, {"version": "2026"}, "per"),
    ({"neighbours": "add-remove"}, {}, "neighbours"),
    ({"unit": "cell"}, CELLS, "unit"),
    ({"columns": {"c0": {"lower": -5.0, "upper": 5.0}}}, {}, "columns"),
    ({"columns": COLUMNS | {"c2": {"lower": -5.0, "upper": 5.5}}}, {}, r"columns\.c2\.upper"),
    ({"columns": dict(reversed(COLUMNS.items()))}, {}, "columns"),
    ({"intercept": True}, {}, "intercept"),
]


def test_edited_contract_is_refused(
    tmp_path: Path, any_home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_release(request_for(tmp_path)) == "v1-r1"
    for changes, otherwise, named in TERMS:
        edited = write_request(tmp_path, request=otherwise, **{"budget": BUDGET} | changes)
        with pytest.raises((TermsChanged, RequestError), match=named) as refused:
            run_release(edited)
        assert isinstance(refused.value, TermsChanged) or named == "a year"
        code, _, err = run_command("release", edited, "--yes", capsys=capsys)
        assert code == 2
        assert "restore them" in err or named == "a year"
    assert charges() == [("v1-r1", "published")]


def test_contract_in_another_folder_shares_the_budget(tmp_path: Path, any_home: Home) -> None:
    """Another source, title or row count is still the same data set, by its id."""
    assert run_release(request_for(tmp_path)) == "v1-r1"
    elsewhere = tmp_path / "elsewhere"
    assert run_release(request_for(elsewhere, title="Another", curator="Somebody")) == "v1-r1"
    write_table(elsewhere / "other.csv", rows=50, seed=3)
    for version in ("v2", "V1", "v1.0", "v01"):  # to relabel the data is no way to have it free
        with pytest.raises(BudgetRefused, match=r"remaining .*--raise"):
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
    {"new_charge": "v9-r9"},
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
        with pytest.raises(BudgetRefused, match="for the data of 2025"):
            run_release(request_for(tmp_path, version, **yearly))
    with pytest.raises(TableError, match=r"t-2026\.csv: no such file"):
        run_release(request_for(tmp_path, "2026", **yearly))
    for version in ("v2025", "25", "20255", "２０２６"):
        with pytest.raises(RequestError, match=r"year|version"):
            run_release(request_for(tmp_path, version, **yearly))
    assert charges() == [("2025-r1", "published")]


def test_other_paths_to_the_same_home_share_the_budget(
    tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = request_for(tmp_path)
    assert run_release(request) == "v1-r1"
    (tmp_path / "link").symlink_to(any_home.root)
    (tmp_path / "deep").mkdir()
    for way in (tmp_path / "link", tmp_path / "deep" / ".." / "home", "./home", "deep/../link/"):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GRAMERCY_HOME", str(way))
        assert run_release(request) == "v1-r1"
        with pytest.raises(BudgetRefused):
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
    books: LedgerDatabase,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run_release(request_for(tmp_path))
    books.save("copy")
    books.use("copy", monkeypatch)
    for version in ("v1", "v2"):
        with pytest.raises(UntrustedLedger, match=r"belongs at .*--moved --reason"):
            run_release(request_for(tmp_path, version))
        code, _, err = run_command("release", tmp_path / "request.yaml", "--yes", capsys=capsys)
        assert code == 2
        assert "belongs at" in err
    assert charges() == [("v1-r1", "published")]
    assert any("is a copy" in each.words for each in make_audit(Context.default()).discrepancies)


def test_hard_linked_ledger_is_refused(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hard link belongs to another archive: nothing is charged through it."""
    run_release(request_for(tmp_path))
    other = tmp_path / "other-home"
    other.mkdir()
    os.link(home / "ledger.sqlite", other / "ledger.sqlite")
    monkeypatch.setenv("GRAMERCY_HOME", str(other))
    with pytest.raises(UntrustedLedger, match=r"--moved --reason"):
        run_release(request_for(tmp_path, "v2"))
    assert charges() == [("v1-r1", "published")]


LOSSES: dict[str, Callable[[LedgerDatabase], None]] = {
    "restored from before": lambda books: books.restore("older"),
    "restored from before anything": lambda books: books.restore("empty"),
    "lost": LedgerDatabase.lose,
    "emptied": LedgerDatabase.empty,
}


@pytest.mark.parametrize("loss", list(LOSSES))
def test_rolled_back_ledger_is_refused(loss: str, tmp_path: Path, books: LedgerDatabase) -> None:
    """Found by the anchors in the archive, and without them by its releases."""
    large = {"budget": {"epsilon": 2.2, "delta": 1e-6}}
    archive = LocalArchive(books.home.archive)
    Ledger.of(books.home)
    books.save("empty")
    run_release(request_for(tmp_path, "v1", **large))
    books.save("older")
    run_release(request_for(tmp_path, "v2", **large))
    held = archive.releases()
    LOSSES[loss](books)
    for _ in ("with anchors", "without"):
        for version in ("v1", "v2", "v3"):
            request = request_for(tmp_path, version, **large)
            if loss == "lost" and books.url is not None:  # a database is not made by itself
                with pytest.raises(LedgerError, match="ledger cannot be used"):
                    run_release(request)
                continue
            with pytest.raises(UntrustedLedger, match="Restore the ledger"):
                run_release(request)
            assert len(charges()) == (1 if loss == "restored from before" else 0)
            assert make_audit(Context.default()).discrepancies
        shutil.rmtree(books.home.archive / ".ledger", ignore_errors=True)
    assert archive.releases() == held


def test_missing_archive_is_refused(
    tmp_path: Path, any_home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_release(request_for(tmp_path))
    away = any_home.archive.rename(tmp_path / "away")
    for version in ("v1", "v2"):
        with pytest.raises(UntrustedLedger, match=r"never heard of it.*Restore"):
            run_release(request_for(tmp_path, version))
    any_home.archive.mkdir()
    with pytest.raises(UntrustedLedger):
        run_release(request_for(tmp_path))
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(tmp_path / "new"))
    with pytest.raises(UntrustedLedger):
        run_release(request_for(tmp_path))
    monkeypatch.setenv("GRAMERCY_ARCHIVE_URL", str(away))
    assert run_release(request_for(tmp_path)) == "v1-r1"
    # One release alone is gone: it is missed, and not drawn again.
    shutil.rmtree(away / "toy")
    with pytest.raises(BundleError, match="never drawn again"):
        run_release(request_for(tmp_path))
    assert charges() == [("v1-r1", "published")]


def test_moved_ledger_keeps_what_was_spent(tmp_path: Path, any_home: Home) -> None:
    """A ledger that the steward declares as moved still counts what was spent."""
    run_release(request_for(tmp_path))
    shutil.rmtree(any_home.archive)
    Ledger.of(any_home).move("the disk is gone")
    with pytest.raises(BundleError, match="never drawn again"):
        run_release(request_for(tmp_path))
    with pytest.raises(BudgetRefused):
        run_release(request_for(tmp_path, "v2"))
    assert charges() == [("v1-r1", "published")]


def test_two_homes_share_one_ledger_budget(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.support.databases import ledger_location

    url = str(ledger_location("postgresql", home))
    environ = os.environ | {"GRAMERCY_LEDGER_URL": url, "OMP_NUM_THREADS": "1"}
    script = (
        "import sys; from pathlib import Path; from tests.support.factories import run_release\n"
    )
    script += "try: print(run_release(Path(sys.argv[1])))\n"
    script += "except Exception as e: print(type(e).__name__, e)"

    def start(place: Path, request: Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", script, str(request)],
            env=environ | {"GRAMERCY_HOME": str(place)},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    both = [
        start(tmp_path / name, request_for(tmp_path / f"asked-{name}", version))
        for name, version in (("one", "v1"), ("two", "v2"))
    ]
    said = sorted(each.communicate(timeout=120)[0].strip() for each in both)
    done = [words for words in said if words.startswith("v")]
    (other,) = [words for words in said if not words.startswith("v")]
    assert len(done) == 1
    assert other.startswith(("UntrustedLedger", "BudgetRefused"))
    monkeypatch.setenv("GRAMERCY_LEDGER_URL", url)
    assert charges() == [(done[0], "published")]


@pytest.mark.usefixtures("prefect_server")
def test_new_charge_must_name_the_spent_release(
    tmp_path: Path,
    any_home: Home,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as failing:
        failing.setattr("gramercy.application.drawing.denoise", broken)
        with pytest.raises(GramercyError):
            run_release(request_for(tmp_path))
    for other in ("v1-r2", "v2-r1", "V1-R1", "v1-r01"):
        with pytest.raises(SpentFailure, match="--new-charge"):
            run_release(write_request(tmp_path, request={"new_charge": other}, budget=BUDGET))
    again = write_request(tmp_path, request={"new_charge": "v1-r1"}, budget=BUDGET)
    with pytest.raises(BudgetRefused, match="--raise"):
        run_release(again)
    code, _, err = run_command(
        "release", request_for(tmp_path), "--yes", "--new-charge", capsys=capsys
    )
    assert code == 2
    assert "--raise" in err
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
    with pytest.raises(BudgetRefused):
        run_release(request_for(tmp_path, "v2"))


@pytest.mark.usefixtures("prefect_server")
def test_rollback_of_ledger_and_archive_is_found_by_prefect_history(
    tmp_path: Path, books: LedgerDatabase, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ledger and archive agree after a rollback of both: only Prefect's history shows it."""
    from gramercy.flows.release import release

    large = {"budget": {"epsilon": 2.2, "delta": 1e-6}}
    archive, saved = books.home.archive, tmp_path / "saved"
    release(read_request(request_for(tmp_path, "v1", **large)))
    books.save("older")
    shutil.copytree(archive, saved)
    release(read_request(request_for(tmp_path, "v2", **large)))
    books.restore("older")
    shutil.rmtree(archive)
    saved.rename(archive)
    for version in ("v1", "v2", "v3"):
        request = request_for(tmp_path, version, **large)
        with pytest.raises(UntrustedLedger, match=r"ends at entry .*Restore the ledger"):
            release(read_request(request))
    code, _, err = run_command("release", request, "--yes", capsys=capsys)
    assert code == 2
    assert "Restore the ledger" in err
    assert charges() == [("v1-r1", "published")]
