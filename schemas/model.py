"""The base class of schemas: frozen, without unknown keys, with readable errors."""

from __future__ import annotations

import datetime
import difflib
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gramercy.schemas import corrections, families, wordings
from gramercy.schemas.errors import BundleError, ContractError, Invalid, InvalidValue, RequestError
from gramercy.schemas.form import describe_schema
from gramercy.schemas.problem import Wording
from gramercy.schemas.url import without_secrets

_manifest_not_valid = Wording(families.MANIFEST, "{file} is not a valid manifest:")


_settings_not_valid = Wording(families.SETTINGS, "Settings of {name} are not valid:")


class Model(BaseModel):
    """A frozen record that refuses unknown keys and suggests the known key that was meant."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, json_schema_extra=describe_schema
    )

    # Whether a form sends null keys, too, by which it recognises the member of a union.
    form_keeps_null: ClassVar[bool] = False

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            keys = [field.alias or name for name, field in cls.model_fields.items()]
            for key in data:
                if key not in keys:
                    display = without_secrets(str(key))
                    if data[key] is None and str(key).isdecimal():
                        raise corrections.decimal_comma()
                    meant = corrections.MEANT.get(str(key).lower())
                    if meant in keys:
                        raise families.KEY(
                            "Unknown key '{key}'.",
                            "Write '{suggestion}'.",
                            key=display,
                            suggestion=meant,
                        )
                    if similar := difflib.get_close_matches(str(key), keys, n=1):
                        raise families.KEY(
                            "Unknown key '{key}'.",
                            "Did you mean '{suggestion}'?",
                            key=display,
                            suggestion=similar[0],
                        )
                    raise families.KEY(
                        "Unknown key '{key}'.",
                        "Known keys: {known}.",
                        key=display,
                        known=tuple(keys),
                    )
        return data


def label(value: Any) -> Any:
    """The label for a value from YAML, which reads 2024 as a number and 2024-01-31 as a date."""
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, float):  # 1.10 would become 1.1
        raise families.VALUE("This label is read as a number.", "Put it in quotes.")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value) if type(value) is int else value


def expand_kind(value: Any) -> Any:
    """The mapping that a bare name stands for: its `kind`, with defaults for all other keys."""
    return {"kind": value} if isinstance(value, str) else value


def nfc(text: str) -> str:
    """The text in the Unicode normal form C, in which names, levels and codes are compared."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def in_nfc(value: Any) -> Any:
    """A value of YAML with all of its texts in NFC; two keys must not become one."""
    if isinstance(value, str):
        return nfc(value)
    if isinstance(value, Mapping):
        normal = {in_nfc(key): in_nfc(each) for key, each in value.items()}
        if len(normal) < len(value):
            raise families.KEY(
                "Two keys differ only in how Unicode writes their accents.", "Remove one of them."
            )
        return normal
    return type(value)(map(in_nfc, value)) if type(value) in (list, tuple) else value


_UNPRINTABLE = {"Cc", "Cs", "Cn"}
_DIRECTION_MARKS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def has_unprintable(text: str) -> bool:
    """Whether a text has control characters or non-characters, which terminals and XML reject."""
    return any(unicodedata.category(each) in _UNPRINTABLE for each in text)


def single_line(text: str) -> str:
    """The text, if it is a single line and does not change the writing direction."""
    if not text.strip():
        raise wordings.no_entries()
    breaks_line = any(unicodedata.category(each) in {"Zl", "Zp"} for each in text)
    changes_direction = any(unicodedata.bidirectional(each) in _DIRECTION_MARKS for each in text)
    if has_unprintable(text) or breaks_line or changes_direction:
        raise families.VALUE("Must be a single line without control characters.")
    return text


# Numbers are strict: "1" and true are mistakes, not numbers.
Real = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
NotNegative = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]
Epsilon = Annotated[float, Field(strict=True, ge=1e-4, le=1e3, allow_inf_nan=False)]
Delta = Annotated[float, Field(strict=True, ge=1e-100, lt=1, allow_inf_nan=False)]
DeltaOrZero = Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)]
Decibels = Annotated[float, Field(strict=True, ge=-300, le=300, allow_inf_nan=False)]
Mu = Annotated[float, Field(strict=True, ge=1e-6, le=1e3, allow_inf_nan=False)]
MuOfPure = Annotated[float, Field(strict=True, ge=1e-6, le=50, allow_inf_nan=False)]
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
SLUG = r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"
Slug = Annotated[str, Field(pattern=SLUG)]
LONGEST_LABEL = 63
Label = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"), BeforeValidator(label)
]

M = TypeVar("M", bound=Model)

_MOST_LISTED = 10  # problems of one file that are reported at once
_NOT_VALID: dict[type[Invalid], Callable[[str], Invalid]] = {
    ContractError: wordings.contract_not_valid,
    RequestError: wordings.request_not_valid,
    BundleError: _manifest_not_valid,
    InvalidValue: _settings_not_valid,
}


def parse(model: type[M], data: object, where: str, error: type[Invalid]) -> M:
    """Validate `data` as `model`.

    Parameters
    ----------
    error
        Class of the error: for a contract, a request, a manifest, or settings in Python.
    """
    details: list[InvalidValue] = []
    if not isinstance(data, Mapping):
        details.append(
            families.KEY(
                "Expected keys and values.", "Known keys: {known}.", known=tuple(model.model_fields)
            )
        )
    else:
        try:
            return model.model_validate(dict(data))
        except ValidationError as caught:
            details += details_of(caught)
    failure = _NOT_VALID[error](where)
    failure.details = tuple(details[:_MOST_LISTED])
    failure.facts["left_out"] = max(0, len(details) - _MOST_LISTED)
    raise failure


def finite_or_none(number: float) -> float | None:
    """The number, or None if it is infinite, because JSON has no infinity."""
    return number if math.isfinite(number) else None


def canonical_json(data: Any) -> str:
    """Canonical JSON, for comparing and hashing public facts."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(data: Any) -> str:
    """SHA-256 of `canonical_json(data)`, in hexadecimal."""
    return hashlib.sha256(canonical_json(data).encode()).hexdigest()


_MOST_ERRORS = 10_000  # a hostile file may have any number


def details_of(error: ValidationError) -> list[InvalidValue]:
    """A problem for each invalid key; problems of the whole file come first."""
    errors = sorted(error.errors(include_url=False), key=lambda each: len(each["loc"]))
    by_key: dict[tuple[str, ...], list[Any]] = {}
    for each in errors[:_MOST_ERRORS]:
        by_key.setdefault(_path_of(each), []).append(each)
    # A list without a single valid entry is not reported as empty as well.
    inner = {path[:length] for path in by_key for length in range(len(path))}
    details = []
    for path, of_key in by_key.items():
        found = [x for x in of_key if not (x["type"] == "too_short" and path in inner)]
        kinds = dict.fromkeys(each["type"] for each in found)
        # Each branch of a union reports what it expects.
        if len(kinds) > 1 and all(kind in _EXPECTED for kind in kinds):
            problems = [_none_of(kinds, found[0]["input"])]
        else:
            problems = [_problem_of(each, path) for each in found]
        for problem in {each.message: each for each in problems}.values():
            problem.key = without_secrets(".".join(path).removesuffix(".[key]"))
            details.append(problem)
    return details


_BRANCH = re.compile(r"(function-|literal\[|tuple\[|constrained-|column-of-|source-of-)")
_OF_VALUES = (["float"], ["int"], ["str"], ["bool"])  # branches of unions


def _path_of(error: Any) -> tuple[str, ...]:
    """The keys to the value of one pydantic error.

    Its location also names branches of unions, such as "literal['auto']" or "float".
    """
    loc = [part for part in error["loc"] if not _BRANCH.match(str(part))]
    if loc[-1:] == ["[key]"]:
        return tuple(map(str, loc))
    # And it has the tags of unions, which pydantic adds after some parts.
    tagged = {"normalisation", "mechanism", "scaling", "engine"}
    path = [
        str(part)
        for before, part in zip([None, *loc], loc, strict=False)
        if isinstance(part, int) or not (isinstance(before, int) or before in tagged)
    ]
    return tuple(path[:-1] if path[-1:] in _OF_VALUES else path)


def _none_of(kinds: Iterable[str], value: Any) -> InvalidValue:
    """The problem of a value that is of none of several kinds."""
    expected = " or ".join(_EXPECTED[kind] for kind in kinds)
    if isinstance(value, datetime.date) and "string_type" in kinds:
        return families.VALUE(
            "This text is read as a date.", "Put it in quotes.", expected=expected
        )
    return families.VALUE("Must be {expected}.", expected=expected)


_EXPECTED = {
    "float_type": "a number",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "dict_type": "keys and values",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "string_type": "text",
    "tuple_type": "a list",
    "finite_number": "a finite number",
}
_IN_QUOTES = re.compile("'([^']*)'")
_RELATIONS = {"ge": "at least", "gt": "greater than", "le": "at most", "lt": "less than"}


@dataclass(frozen=True)
class _Mistake:
    """One pydantic error: where, which value, and what pydantic says about it."""

    path: tuple[str, ...]
    value: Any
    context: Mapping[str, Any]


def _unknown_value(mistake: _Mistake) -> InvalidValue:
    context = mistake.context
    known = _IN_QUOTES.findall(context.get("expected_tags") or context["expected"])
    stated = context.get("tag", mistake.value)
    if isinstance(stated, str) and (similar := difflib.get_close_matches(stated, known, n=1)):
        return families.KEY("Unknown value.", "Did you mean '{suggestion}'?", suggestion=similar[0])
    if "expected_tags" in context:
        return families.KEY("'name' or 'kind' must be one of: {known}.", known=tuple(known))
    return families.VALUE("Must be one of: {known}.", known=tuple(known))


def _not_structured(mistake: _Mistake, expected: str) -> InvalidValue:
    return corrections.not_structured(mistake.path, expected)


_PROBLEMS: dict[str, Callable[[_Mistake], InvalidValue]] = {
    "missing": lambda _: families.KEY("This key is required.", "Add it."),
    "too_long": lambda mistake: families.KEY(
        "Must not have more than {most} entries.", most=mistake.context["max_length"]
    ),
    "too_short": lambda _: wordings.no_entries(),
    **dict.fromkeys(("literal_error", "enum", "union_tag_invalid"), _unknown_value),
    "union_tag_not_found": lambda mistake: families.KEY(
        "The key 'name' or 'kind' is required here.",
        "Write {example}.",
        example=corrections.example_of(mistake.path) or "it",
    ),
    "string_pattern_mismatch": lambda mistake: corrections.not_a_label(
        small=mistake.context["pattern"] == SLUG
    ),
    "value_error": lambda mistake: copy(mistake.context["error"]),
    "float_type": lambda mistake: corrections.not_a_number(
        mistake.value, mistake.path, whole=False
    ),
    **dict.fromkeys(
        ("int_type", "int_from_float"),
        lambda mistake: corrections.not_a_number(mistake.value, mistake.path, whole=True),
    ),
    "bool_type": lambda mistake: corrections.not_a_boolean(mistake.value),
    **{
        kind: partial(_not_structured, expected=expected)
        for kind, expected in _EXPECTED.items()
        if expected in ("keys and values", "a list")
    },
}


def _problem_of(error: Any, path: tuple[str, ...]) -> InvalidValue:
    """The problem for one pydantic error; see `corrections` for what it contains of the input."""
    kind, context, value = error["type"], error.get("ctx", {}), error["input"]
    if path[-1:] == ("[key]",):
        return families.VALUE("This name is read as a number or a date.", "Put it in quotes.")
    if value is None and kind.endswith("_type"):
        return wordings.value_empty(corrections.example_of(path) or "one")
    has_problem = "error" not in context or isinstance(context["error"], InvalidValue)
    if kind in _PROBLEMS and has_problem:
        return _PROBLEMS[kind](_Mistake(path, value, context))
    for short, relation in _RELATIONS.items():
        if short in context:
            return families.VALUE(
                "Must be {relation} {bound:g}.", relation=relation, bound=context[short]
            )
    reason = _EXPECTED.get(kind) or error["msg"].removeprefix("Value error, ").rstrip(".")
    reason = reason.removeprefix("Input should be ")
    return families.VALUE("Must be {expected}.", expected=reason)
