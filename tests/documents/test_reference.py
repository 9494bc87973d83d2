"""docs/reference is up to date and complete."""

from __future__ import annotations

import re
import runpy

import typer.main

import gramercy
import gramercy.estimators.scikit
from gramercy import estimators, mechanisms
from gramercy.cli.main import app
from gramercy.schemas.families import catalogue
from tests.support.documents import ROOT

FOLDER = ROOT / "docs" / "reference"


def written() -> dict[str, str]:
    return {page.name: page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md")}


def headings() -> set[str]:
    return {
        line.strip("# `")
        for page in written().values()
        for line in page.splitlines()
        if line.startswith("##")
    }


def test_reference_is_up_to_date() -> None:
    generated = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()
    stale = {
        name for name in generated.keys() | written() if generated.get(name) != written().get(name)
    }
    assert not stale, "run 'python docs/generate.py'"


def test_pictures_are_up_to_date() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "pictures.py"))["pictures"]()
    stale = [name for name, text in drawn if (ROOT / "docs" / name).read_text("utf-8") != text]
    assert not stale, "run 'python docs/pictures.py'"


def test_reference_covers_the_public_interface() -> None:
    text = "\n".join(written().values())
    commands = typer.main.get_group(app).commands
    assert {f"gramercy {name}" for name in commands} <= headings()
    assert {
        *estimators.registry,
        *mechanisms.registry,
        *gramercy.estimators.scikit.__all__,
    } <= headings()
    assert {"Catalogue", "Release", "Contract", "ReleaseRequest"} <= headings()
    assert all(f"`{name}`" in text or name in headings() for name in gramercy.__all__)


def test_every_code_has_a_heading_a_cause_and_a_remedy() -> None:
    page = written()["errors.md"]
    entries = re.findall(r"^### (GRM-\d{3})\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    assert [code for code, _ in entries] == list(catalogue())
    for code, entry in entries:
        assert "\n* Cause: " in entry, code
        assert "\n* Remedy: " in entry, code
