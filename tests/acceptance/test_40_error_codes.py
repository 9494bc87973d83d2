"""Every error that users can meet has a code, and tests do not assert prose."""

from __future__ import annotations

import ast
import functools
import html
import re
from collections import Counter
from pathlib import Path
from string import Formatter

from gramercy.schemas import errors, families
from gramercy.schemas.families import catalogue
from gramercy.schemas.problem import Family
from tests.test_architecture import ROOT, sources

TESTS = ROOT / "tests"
MOST_CODES, MOST_WORDS = 120, 8000
CLASSES = {name for name, each in vars(errors).items() if isinstance(each, type)}


@functools.cache
def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def test_every_error_has_a_code() -> None:
    """Exceptions with a text for users are created by families only."""
    bare = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sources()
        for call in calls(path)
        if isinstance(call.func, ast.Name)
        and (call.func.id in CLASSES or (call.func.id.endswith("Error") and call.args))
        and call.func.id not in {"AttributeError", "TypeError"}  # mistakes in code, not in input
    ]
    assert not bare


def test_every_family_is_used_and_there_are_few() -> None:
    """The reference would list a code that never occurs; and no one can look up hundreds."""
    uses = Counter(
        word for path in sources() for word in re.findall(r"families\.(\w+)", path.read_text())
    )
    names = {name for name, each in vars(families).items() if isinstance(each, Family)}
    assert names == uses.keys() - {"catalogue"}
    assert len(catalogue()) == len(names) <= MOST_CODES


def test_every_placeholder_is_a_fact() -> None:
    """An error in a text would hide the problem that it describes."""
    for path in sources():
        for call in calls(path):
            if not ast.unparse(call.func).startswith("families.") or not call.keywords + call.args:
                continue
            texts = [ast.literal_eval(each) for each in call.args]
            assert 1 <= len(texts) <= 2, ast.unparse(call)
            facts = {each.arg for each in call.keywords}
            for text in texts:
                placed = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
                assert placed <= facts, ast.unparse(call)


def test_reference_lists_code_cause_and_remedy() -> None:
    text = html.unescape((ROOT / "docs" / "reference" / "errors.md").read_text())
    assert len(text.split()) <= MOST_WORDS
    page = " ".join(text.replace("\\", "").split())  # without Markdown's escapes
    for each in catalogue().values():
        assert all(text in page for text in (each.code, each.cause, each.remedy))
        assert each.cause.endswith(".")
        assert each.remedy.endswith(".")
    assert re.findall(r"^### (GRM-\d+)$", text, re.MULTILINE) == list(catalogue())


def test_no_test_asserts_prose() -> None:
    """Tests name a family and facts, so that they do not depend on the wording."""
    prose = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted(TESTS.rglob("*.py"))
        if "match=" in path.read_text()
        for call in calls(path)
        if any(keyword.arg == "match" for keyword in call.keywords)
    ]
    assert not prose
