"""A model's JSON schema as people meet it: Prefect's pages make a form of it.

Titles and descriptions come from docstrings, so that there is one place that says what a key means.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

_PARAMETERS = re.compile(
    r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", re.MULTILINE | re.DOTALL
)
_TAGS = ("name", "kind")


def for_people(schema: dict[str, Any], model: type[Any]) -> None:
    """Give a model's schema, and each of its keys, a title and a description; in place."""
    keys = schema.get("properties", {})
    schema["title"] = next(
        (keys[tag]["const"] for tag in _TAGS if "const" in keys.get(tag, {})), schema.get("title")
    )
    if about := _first_paragraph(model):
        schema["description"] = about
    told = _parameters(model)
    for key, facts in keys.items():
        words = "Goes with the choice above." if "const" in facts else told.get(key)
        if words:
            facts["description"] = words


def _first_paragraph(model: type[Any]) -> str:
    first = _plain(inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0])
    tagged, colon, rest = first.partition("': ")  # "'gaussian': the default"
    return rest[:1].upper() + rest[1:] if colon and tagged.startswith("'") else first


def _parameters(model: type[Any]) -> dict[str, str]:
    """What the docstrings of a class and of those it inherits from say of each parameter."""
    told: dict[str, str] = {}
    for each in reversed(model.__mro__):
        found = _PARAMETERS.search(inspect.cleandoc(each.__dict__.get("__doc__") or ""))
        names: list[str] = []
        for line in found[1].splitlines() if found else ():
            if line and not line.startswith(" "):
                names = line.split(", ")
                told |= dict.fromkeys(names, "")
            else:
                told |= {name: f"{told[name]} {line.strip()}".strip() for name in names}
    return {name: _plain(words) for name, words in told.items()}


def _plain(words: str) -> str:
    """Without the marks of reStructuredText."""
    return " ".join(re.sub(r"`+", "'", words).split())
