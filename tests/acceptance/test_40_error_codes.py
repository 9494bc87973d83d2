"""Every error that users can meet has a code, and tests do not assert prose."""

from __future__ import annotations

import ast
import html
import re
from collections import Counter
from pathlib import Path

from gramercy.schemas import errors
from gramercy.schemas.problems import catalogue
from tests.test_architecture import ROOT, sources

TESTS = ROOT / "tests"
CLASSES = {name for name, each in vars(errors).items() if isinstance(each, type)}


def calls(path: Path) -> list[ast.Call]:
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]


def test_every_error_has_a_code() -> None:
    """Exceptions with a text for users are created by problem types only."""
    bare = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sources()
        for call in calls(path)
        if isinstance(call.func, ast.Name)
        and (call.func.id in CLASSES or (call.func.id.endswith("Error") and call.args))
        and call.func.id not in {"AttributeError", "TypeError"}  # mistakes in code, not in input
    ]
    assert not bare


def test_every_problem_type_is_raised() -> None:
    """The reference would list a code that never occurs."""
    uses = Counter(word for path in sources() for word in re.findall(r"\w+", path.read_text()))
    unused = [each.code for each in catalogue().values() if uses[each.name] < 2]
    assert not unused


def test_reference_lists_code_cause_and_remedy() -> None:
    text = html.unescape((ROOT / "docs" / "reference" / "errors.md").read_text())
    page = " ".join(text.replace("\\", "").split())  # without Markdown's escapes
    for each in catalogue().values():
        facts = each.described()
        assert facts["code"] in page
        assert " ".join(facts["cause"].split()) in page
        assert " ".join(facts["hint"].split()) in page
    assert re.findall(r"^### (GRM-\d+)$", text, re.MULTILINE) == list(catalogue())


def test_no_test_asserts_prose() -> None:
    """Tests name a problem type and its facts, so that they do not depend on its wording."""
    prose = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted(TESTS.rglob("*.py"))
        for call in calls(path)
        if any(keyword.arg == "match" for keyword in call.keywords)
    ]
    assert not prose
