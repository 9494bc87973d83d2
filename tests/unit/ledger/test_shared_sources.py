"""One table under two ids has two budgets, which plan, budget and audit report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.ledger.entry import datasets_with_same_source, normalised_source
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.auditing import make_audit
from gramercy.schemas import wordings
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.source import Files
from tests.support.archives import update_listing
from tests.support.factories import (
    contract_facts,
    run_command,
    run_json,
    run_release,
    write_request,
    write_yaml,
)
from tests.support.ledgers import TENTH, contract


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """A request of another data set over the table of 'toy', which has one release."""
    run_release(write_request(tmp_path))
    os.symlink(tmp_path, tmp_path / "link")
    write_yaml(tmp_path / "other.yaml", contract_facts("link/table.csv") | {"id": "other"})
    mechanism = {"name": "gaussian", "epsilon": 1.0, "delta": 1e-6}
    request = {"dataset": "other.yaml", "version": "v1", "mechanism": mechanism}
    return write_yaml(tmp_path / "second.yaml", request)


@pytest.mark.slow
def test_plan_names_data_sets_with_the_same_table(
    second: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_json("plan", second, capsys=capsys)["same_table_as"] == ["toy"]
    assert run_json("plan", tmp_path / "request.yaml", capsys=capsys)["same_table_as"] == []
    _, out, _ = run_command("plan", second, capsys=capsys)
    assert "toy" in out


@pytest.mark.slow
def test_budget_and_audit_name_data_sets_with_the_same_table(
    second: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_release(second)
    budgets = {each["dataset"]: each for each in run_json("budget", capsys=capsys)}
    assert budgets["toy"]["same_table_as"] == ["other"]
    assert budgets["other"]["same_table_as"] == ["toy"]
    update_listing(Context.default(), "other", "v1-r1")
    audit = make_audit(Context.default())
    assert audit.discrepancies == []
    assert wordings.table_shared(("other", "toy")) in audit.notes


def test_declared_sources_are_normalised_before_comparison(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    for spelling in (f"file://{path}", f"local://{path}", f"{tmp_path}/x/../t.csv"):
        assert normalised_source(spelling) == normalised_source(str(path))
    assert normalised_source("s3://key:secret@bucket/t.csv?sig=abc") == "s3://bucket/t.csv"
    sources = {"a": {"/t", "/u"}, "b": {"/u"}, "c": {"/v"}}
    assert datasets_with_same_source(sources, "a") == ("b",)
    assert datasets_with_same_source(sources, "d", ["/v"]) == ("c",)
    assert datasets_with_same_source(sources, "d") == ()


def test_ledger_stores_no_credentials_of_a_source(home: Path) -> None:
    terms = contract(source="https://user:SECRET@host.invalid/t.csv?sig=TOKEN")
    ledger = Ledger.of(Home(home))
    ledger.charge(terms, "v1", "one", TENTH, "")
    assert ledger.sources() == {"toy": {"https://host.invalid/t.csv"}}
    assert not [e for e in ledger.entries() if "SECRET" in e.facts or "TOKEN" in e.facts]


def test_tables_of_databases_are_compared_by_name() -> None:
    """Whichever rows of them are read."""
    table = {"url": "env:CLINIC_DB", "table": "visits"}
    all_rows, some = (DatabaseTable(**table, where=x) for x in (None, "age >= 18"))
    other = DatabaseTable(url="env:CLINIC_DB", table="persons")
    sources = {"adults": {normalised_source(some)}}
    assert datasets_with_same_source(sources, "clinic", [all_rows]) == ("adults",)
    assert datasets_with_same_source(sources, "clinic", [other]) == ()
    files = Files(path="/srv/t.csv", separator=";")
    assert normalised_source(files) == normalised_source("/srv/t.csv")
