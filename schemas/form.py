"""Titles and descriptions in a model's JSON schema, from which Prefect makes a form.

They come from docstrings, so that each key is explained in one place.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

_PARAMETERS = re.compile(
    r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", re.MULTILINE | re.DOTALL
)
_TAGS = ("name", "kind")


def describe_schema(schema: dict[str, Any], model: type[Any]) -> None:
    """Add a title and descriptions to a model's schema and its keys, in place."""
    keys = schema.get("properties", {})
    schema["title"] = next(
        (keys[tag]["const"] for tag in _TAGS if "const" in keys.get(tag, {})), schema.get("title")
    )
    if summary := _first_paragraph(model):
        schema["description"] = summary
    parameters = _parameters(model)
    for key, facts in keys.items():
        if not model.form_keeps_null:
            _leave_out_null(facts)
        description = "Set by the choice above." if "const" in facts else parameters.get(key)
        if description:
            facts["description"] = description
    number_keys(keys)


def number_keys(keys: dict[str, dict[str, Any]]) -> None:
    """State the order of the keys, in place: a server's database may not keep it."""
    for position, facts in enumerate(keys.values()):
        facts["position"] = position


def _leave_out_null(facts: dict[str, Any]) -> None:
    """A key that is null by default: in a form it is a field to fill in, or to leave empty."""
    other = [each for each in facts.get("anyOf", ()) if each != {"type": "null"}]
    if len(other) == 1 and "default" in facts and facts["default"] is None:
        del facts["anyOf"], facts["default"]
        facts |= other[0]


def _first_paragraph(model: type[Any]) -> str:
    first = _plain(inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0])
    tagged, colon, rest = first.partition("': ")  # "'gaussian': the default"
    return rest[:1].upper() + rest[1:] if colon and tagged.startswith("'") else first


def _parameters(model: type[Any]) -> dict[str, str]:
    """Descriptions of the parameters in the docstrings of a class and its base classes."""
    descriptions: dict[str, str] = {}
    for base in reversed(model.__mro__):
        section = _PARAMETERS.search(inspect.cleandoc(base.__dict__.get("__doc__") or ""))
        names: list[str] = []
        for line in section[1].splitlines() if section else ():
            if line and not line.startswith(" "):
                names = line.split(", ")
                descriptions |= dict.fromkeys(names, "")
            else:
                for name in names:
                    descriptions[name] = f"{descriptions[name]} {line.strip()}".strip()
    return {name: _plain(text) for name, text in descriptions.items()}


def _plain(text: str) -> str:
    """The text without reStructuredText markup."""
    return " ".join(re.sub(r"`+", "'", text).split())
