"""The documents: links resolve, tables are correct, the glossary is complete."""

from __future__ import annotations

import math
import pkgutil
import re
from pathlib import Path
from typing import Any

import pytest
import typer.main
from ruamel.yaml import YAML
from scipy.special import ndtr

from gramercy import estimators, mechanisms
from gramercy.cli.commands import COMMANDS, load
from gramercy.cli.main import app
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import ContractError, RequestError
from gramercy.schemas.model import parse
from tests.support.documents import ROOT, blocks, documents

DOCS = ROOT / "docs"
LINK = re.compile(r"\]\(([^)#:\s]*)(?:#([^)\s]*))?\)")
SOURCE = re.compile(r"`((?:gramercy|estimators|schemas|flows|tasks|tests|docs)/[\w./-]*)`")
MODULE = re.compile(r"`(gramercy(?:\.\w+)+)`")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Anchors of headings, as code hosts generate them."""
    headings = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", each.lower()).replace(" ", "-") for each in headings}


@pytest.mark.parametrize("page", documents(), ids=lambda p: str(p.relative_to(ROOT)))
def test_document_links_resolve(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for path, heading in LINK.findall(text):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), (page.name, path)
        assert not heading or heading in anchors(target), (page.name, path, heading)


@pytest.mark.parametrize(
    "page", [*documents(), ROOT / "CONTRIBUTING.md"], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_file_and_module_named_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for path in SOURCE.findall(text):
        assert (ROOT / path).exists(), (page.name, path)
    for name in MODULE.findall(text):
        assert pkgutil.resolve_name(name), (page.name, name)


def test_every_page_is_in_the_index() -> None:
    indexes = [DOCS / "README.md", DOCS / "results.md"]
    linked = {
        target for each in indexes for target, _ in LINK.findall(each.read_text(encoding="utf-8"))
    }
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    assert {page for page in pages if not page.startswith("mechanisms/")} - {"README.md"} <= linked


def test_best_attacker_table_is_correct() -> None:
    text = (DOCS / "privacy-explained.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE)
    assert len(rows) == 7
    for epsilon, mu, correct, identified in rows:
        exact = gdp_mu(float(epsilon), 1e-6)
        assert mu == f"{exact:.3f}"
        assert correct == f"{math.ceil(1000 * ndtr(exact / 2)) / 10:.1f}"  # upper bounds
        assert identified == f"{math.ceil(1000 * Guarantee(exact).power(0.05)) / 10:.1f}"
    family = Guarantee(4 * gdp_mu(1, 1e-6)).epsilon(1e-6)
    assert f"a family of four at ε = 1 has about the protection of ε = {family:.1f}" in text


@pytest.mark.parametrize("name", ["README.md", "docs/how-to/publish.md", "docs/tutorial.md"])
def test_contracts_and_requests_are_valid(name: str) -> None:
    """A contract and a request copied from a page are accepted together."""
    facts = [
        YAML(typ="safe", pure=True).load(block.text)
        for block in blocks(ROOT / name)
        if block.language == "yaml" and ".yaml" in block.text.partition("\n")[0]
    ]
    contract = parse(Contract, facts[0], name, ContractError)
    request = parse(Request, facts[1], name, RequestError)
    request.check_delta(contract)
    assert request.mechanism.epsilon <= contract.budget.epsilon
    assert request.dataset == "contract.yaml"


def test_every_option_shown_exists() -> None:
    checked = 0
    for page in documents():
        for block in blocks(page):
            for line in block.text.splitlines() if block.language == "sh" else ():
                words = line.partition("#")[0].split()
                if words[:1] == ["gramercy"]:
                    used = {word for word in words if word.startswith("--")}
                    assert used <= options(words[1:]), (page.name, line)
                    checked += len(used)
    assert checked > 10


def options(words: list[str]) -> set[str]:
    """Options of a command, and of its subcommand if one is given."""
    command: Any = load(words[0]) if words[0] in COMMANDS else typer.main.get_group(app)
    for word in words[1:]:
        command = getattr(command, "commands", {}).get(word, command)
    return {option for parameter in command.params for option in parameter.opts} | {"--help"}


def test_glossary_has_every_mechanism_and_estimator() -> None:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    entries = re.findall(r"^\*\*(.+?)\*\*: (.+)$", text, re.MULTILINE)
    terms = [term for term, _ in entries]
    assert terms == sorted(set(terms), key=str.lower)
    assert {*mechanisms.registry, *estimators.registry} <= set(terms)
    assert text.count("\n\n") == len(entries) + 1  # one paragraph each, and nothing else
    assert all(text.endswith(".") for _, text in entries)


def test_readme_is_short_and_starts_with_the_demo() -> None:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 200
    first = "\n".join(lines[:20])
    assert "make demo" in first
    assert "<picture>" in first
