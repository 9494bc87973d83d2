"""The errors that pydantic finds, as problems with codes; they never contain the input."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

from pydantic import ValidationError

from gramercy.schemas import families, wordings
from gramercy.schemas.errors import InvalidValue
from gramercy.schemas.url import without_secrets

_MOST_ERRORS = 10_000  # a hostile file may have any number


def details_of(error: ValidationError) -> list[InvalidValue]:
    """A problem for each invalid key; problems of the whole file come first."""
    errors = sorted(error.errors(include_url=False), key=lambda each: len(each["loc"]))
    details = map(_detail, errors[:_MOST_ERRORS])
    # Without repetitions: each branch of a union reports its own errors.
    return list({(each.key, each.message): each for each in details}.values())


def _without_tags(loc: list[str | int]) -> list[str]:
    """The path in the file, without the tags of unions, which pydantic adds after some parts."""
    path = [
        part
        for before, part in zip([None, *loc], loc, strict=False)
        if isinstance(part, int)
        or not (isinstance(before, int) or before in {"normalisation", "mechanism", "engine"})
    ]
    return [str(part) for part in path]


_BRANCH = re.compile(r"(function-|literal\[|tuple\[|constrained-|column-of-|source-of-)")


def _detail(error: Any) -> InvalidValue:
    """The problem for one pydantic error; it never contains the input."""
    # The location also names branches of unions, such as "literal['auto']" or "float".
    path = _without_tags([part for part in error["loc"] if not _BRANCH.match(str(part))])
    if path[-1:] == ["[key]"]:
        detail, path = (
            families.VALUE(
                "This name is read as a number or a date.",
                "Put it in quotes.",
            ),
            path[:-1],
        )
    else:
        path = path[:-1] if path[-1:] in (["float"], ["int"], ["str"]) else path
        detail = _problem_of(error)
    detail.key = without_secrets(".".join(path))
    return detail


_EXPECTED = {
    "float_type": "a number such as 0.5, without quotes",
    "int_type": "a whole number such as 20000, without quotes and separators",
    "bool_type": "true or false",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "string_type": "text",
    "tuple_type": "a list",
    "finite_number": "a finite number",
}
_RELATIONS = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}


def _unknown_choice(context: Mapping[str, Any]) -> InvalidValue:
    """The problem for an unknown name of a mechanism, an estimator, or the like."""
    names = _quoted(context["expected_tags"])
    return _misspelt(context["tag"], names) or families.KEY(
        "'name' or 'kind' must be one of: {known}.",
        known=names,
    )


def _misspelt(value: Any, known: tuple[str, ...]) -> InvalidValue | None:
    """The problem for a word that resembles a known one; None if there is no such word."""
    similar = difflib.get_close_matches(value, known, n=1) if isinstance(value, str) else []
    return (
        families.KEY(
            "Unknown value.",
            "Did you mean '{suggestion}'?",
            suggestion=similar[0],
        )
        if similar
        else None
    )


def _quoted(text: str) -> tuple[str, ...]:
    """The words in quotes."""
    return tuple(re.findall("'([^']*)'", text))


_PROBLEMS: dict[str, Callable[[Mapping[str, Any]], InvalidValue]] = {
    "missing": lambda _: families.KEY(
        "This key is required.",
        "Add it.",
    ),
    "too_long": lambda context: families.KEY(
        "Must not have more than {most} entries.",
        most=context["max_length"],
    ),
    "too_short": lambda _: wordings.no_entries(),
    "union_tag_invalid": _unknown_choice,
    "union_tag_not_found": lambda _: families.KEY(
        "The key 'name' or 'kind' is required here.",
        "Add it.",
    ),
    "string_pattern_mismatch": lambda _: families.VALUE(
        "Use letters, digits and inner hyphens only (labels: also '.' and '_'), at most 63.",
    ),
    "value_error": lambda context: copy(context["error"]),
}


def _problem_of(error: Any) -> InvalidValue:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "literal_error":
        misspelt = _misspelt(error["input"], _quoted(context["expected"]))
        if misspelt is not None:
            return misspelt
    if error["input"] is None and kind.endswith("_type"):
        return wordings.value_empty("one")
    if kind in _EXPECTED:
        return families.VALUE(
            "Must be {expected}.",
            expected=_EXPECTED[kind],
        )
    has_problem = "error" not in context or isinstance(context["error"], InvalidValue)
    if kind in _PROBLEMS and has_problem:
        return _PROBLEMS[kind](context)
    for short, relation in _RELATIONS.items():
        if short in context:
            return families.VALUE(
                "Must be {relation} {bound:g}.",
                relation=relation,
                bound=context[short],
            )
    reason = error["msg"].removeprefix("Value error, ").rstrip(".")
    return families.VALUE(
        "Value not allowed: {reason}.",
        reason=reason.replace("Input should be", "Must be"),
    )
