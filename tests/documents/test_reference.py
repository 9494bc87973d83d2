"""docs/reference.md is up to date and complete."""

from __future__ import annotations

import runpy

import typer.main

import gramercy
import gramercy.estimators.scikit
from gramercy import estimators, mechanisms
from gramercy.cli.main import app
from tests.support.documents import ROOT


def test_reference_is_up_to_date() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "generate.py"))["page"]()
    written = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert written == made, "docs/reference.md is not of this code: run 'python docs/generate.py'"


def test_reference_covers_the_public_interface() -> None:
    written = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    headings = {line.strip("# `\n") for line in written.splitlines() if line.startswith("###")}
    commands = typer.main.get_group(app).commands
    assert {f"gramercy {name}" for name in commands} <= headings
    assert {
        *estimators.registry,
        *mechanisms.registry,
        *gramercy.estimators.scikit.__all__,
    } <= headings
    assert {"Catalogue", "Release", "Contract", "ReleaseRequest"} <= headings
    assert all(f"`{name}`" in written or name in headings for name in gramercy.__all__)
