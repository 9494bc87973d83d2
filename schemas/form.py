"""Titles and descriptions in a model's JSON schema, from which Prefect makes a form.

They come from docstrings, so that each key is explained in one place.

Those forms show a union as raw JSON unless it is an ``anyOf``, and choose the member that shares
most keys with the present value, the first of several. They know no discriminators.
"""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Sequence
from typing import Any

from pydantic import GetJsonSchemaHandler
from pydantic_core import CoreSchema

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
    first = _plain(inspect.cleandoc(model.__doc__ or "").partition("\n\n")[0])
    tagged, colon, rest = first.partition("': ")  # "'gaussian': the default"
    if colon and tagged.startswith("'"):
        first = rest[:1].upper() + rest[1:]
    if first:
        schema["description"] = first
    parameters = _parameters(model)
    for key, facts in keys.items():
        # A key that is null by default is a field to fill in, or to leave empty.
        other = [each for each in facts.get("anyOf", ()) if each != {"type": "null"}]
        is_null = "default" in facts and facts["default"] is None
        if len(other) == 1 and is_null and not model.form_keeps_null:
            del facts["anyOf"], facts["default"]
            facts.update(other[0])
        description = "Set by the choice above." if "const" in facts else parameters.get(key)
        if description:
            facts["description"] = description
    number_keys(keys)


def number_keys(keys: dict[str, dict[str, Any]]) -> None:
    """State the order of the keys, in place: a server's database may not keep it."""
    for position, facts in enumerate(keys.values()):
        facts["position"] = position


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


_LOWER, _UPPER = ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")


class Select:
    """A union as one list to select from, with the keys of all members below it.

    Suits members that have most keys in common. The exact union is still what a value must match.

    Parameters
    ----------
    tag
        The key that distinguishes the members.
    """

    def __init__(self, tag: str) -> None:
        self.tag = tag

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        union = handler(core_schema)
        members = [handler.resolve_ref_schema(each) for each in union["oneOf"]]
        keys = dict.fromkeys(key for member in members for key in member["properties"])
        required = [key for key in keys if all(key in each.get("required", ()) for each in members)]
        properties = {self.tag: self._names(members)}
        properties |= {key: self._common(key, members) for key in keys if key != self.tag}
        number_keys(properties)
        return {
            "type": "object",
            "properties": properties,
            "required": required,
            "if": {},  # always: forms ignore it, and the server refuses what no member accepts
            "then": union,
        }

    def _names(self, members: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The names of the members to select from, each with its explanation."""
        names = [member["properties"][self.tag]["const"] for member in members]
        return {
            "type": "string",
            "enum": names,
            "default": names[0],
            "title": self.tag.capitalize(),
            "description": " ".join(
                f"'{name}': {member.get('description', '')}"
                for name, member in zip(names, members, strict=True)
            ),
        }

    def _common(self, key: str, members: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """One key for all members that have it."""
        having = [member for member in members if key in member["properties"]]
        schema = widest([member["properties"][key] for member in having])
        if len(having) < len(members):  # a form would send the default of another member's key
            schema.pop("default", None)
            only = " or ".join(member["properties"][self.tag]["const"] for member in having)
            schema["description"] = f"Only for {only}. {schema.get('description', '')}".strip()
        return schema


class Tabs:
    """A union as tabs, one for each member, that open at the member of the present value.

    Suits members with many keys of their own.
    """

    def __get_pydantic_json_schema__(
        self, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        union = handler(core_schema)
        keys = [set(handler.resolve_ref_schema(each)["properties"]) for each in union["oneOf"]]
        # The given order, but a member comes before those that have all of its keys and more:
        # after them it would never be the first of those that share most keys with a value.
        left, order = list(range(len(keys))), list[int]()
        while left:
            first = next(i for i in left if not any(keys[other] < keys[i] for other in left))
            left.remove(first)
            order.append(first)
        return {"anyOf": [union["oneOf"][place] for place in order]}


def widest(schemas: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A schema that accepts what any of these accepts, with the words of the first."""
    first = copy.deepcopy(schemas[0])
    for key in list(first):
        values: list[Any] = [each.get(key) for each in schemas]
        if all(value == values[0] for value in values):
            continue
        if key in _LOWER + _UPPER and None not in values:
            first[key] = (min if key in _LOWER else max)(values)
        elif key not in ("description", "title"):
            del first[key]
    return first
