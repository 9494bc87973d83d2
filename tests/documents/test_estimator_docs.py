"""docs/estimators.md lists every estimator and setting."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from gramercy import estimators

PAGE = (Path(__file__).parents[2] / "docs" / "estimators.md").read_text(encoding="utf-8")
ROWS = {
    match[1]: match[0] for match in re.finditer(r"^\| `([a-z-]+)` \|.*$", PAGE, flags=re.MULTILINE)
}


def choices(annotation: Any) -> list[str]:
    """All literal values in the type of a setting."""
    if get_origin(annotation) is Literal:
        return [each for each in get_args(annotation) if isinstance(each, str)]
    return [each for part in get_args(annotation) for each in choices(part)]


def test_every_estimator_has_a_row() -> None:
    assert list(ROWS) == list(estimators.registry)


@pytest.mark.parametrize("name", estimators.registry)
def test_every_setting_is_named(name: str) -> None:
    fields = estimators.registry[name].model_fields.keys() - {"name", "group"}
    named = set(re.findall(r"`([a-z_]+)`", ROWS[name].split("|")[3]))
    assert named == fields


@pytest.mark.parametrize("name", estimators.registry)
def test_every_choice_is_named(name: str) -> None:
    for field, facts in estimators.registry[name].model_fields.items():
        for choice in choices(facts.annotation):
            assert field == "name" or choice in ROWS[name], (field, choice)
