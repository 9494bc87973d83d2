"""What every schema shares: frozen, no unknown keys, errors in words."""

from __future__ import annotations

import datetime
import difflib
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from gramercy.schemas.errors import Invalid
from gramercy.schemas.form import for_people
from gramercy.schemas.url import without_secrets


class Model(BaseModel):
    """A frozen record that refuses unknown keys and says which known one was probably meant."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, json_schema_extra=for_people
    )

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            known = list(cls.model_fields)
            for key in data:
                if key not in known:
                    near = difflib.get_close_matches(str(key), known, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}."
                    raise ValueError(f"unknown key {without_secrets(str(key))!r}; {hint}")
        return data


def label(value: Any) -> Any:
    """YAML reads an unquoted 2024 as a number and 2024-01-31 as a date; both are labels here."""
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, float):  # 1.10 would become 1.1
        raise ValueError("is read as a number; put it in quotes")
    if isinstance(value, datetime.date):
        return value.isoformat()
    return str(value) if type(value) is int else value


def by_kind(value: Any) -> Any:
    """A bare name stands for the choice of that `kind`, all else at its defaults."""
    return {"kind": value} if isinstance(value, str) else value


_UNSEEN = {"Cc", "Cs", "Cn"}
_TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def cannot_be_shown(text: str) -> bool:
    """Whether a text holds what terminals and XML do not take: controls, and no characters."""
    return any(unicodedata.category(each) in _UNSEEN for each in text)


def one_line(text: str) -> str:
    """A text that stands on one line and turns nothing beside it; any other is a ValueError."""
    if not text.strip():
        raise ValueError("must not be empty")
    ends = any(unicodedata.category(each) in {"Zl", "Zp"} for each in text)
    turns = any(unicodedata.bidirectional(each) in _TURNING for each in text)
    if cannot_be_shown(text) or ends or turns:
        raise ValueError("must be one line, without control characters")
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
Slug = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")]
Label = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$"), BeforeValidator(label)
]

M = TypeVar("M", bound=Model)

_TOLD = 10  # of what is wrong with one file, at once


def parse(model: type[M], data: object, where: str, error: type[Invalid]) -> M:
    """Validate `data` as `model`.

    Raises
    ------
    Invalid
        Of the class `error`, naming `where`, the key, and the mend.
    """
    if not isinstance(data, Mapping):
        raise error(f"{where}: expected a table of keys.", f"Known keys: {_keys(model)}.")
    try:
        return model.model_validate(dict(data))
    except ValidationError as caught:
        told: dict[str, list[str]] = {}
        # What concerns the whole file first: there may be hundreds of columns.
        for each in sorted(caught.errors(include_url=False), key=lambda each: len(each["loc"])):
            key, words = _in_words(each)
            told.setdefault(key, []).append(words)
        wrong = [key + ", or ".join(dict.fromkeys(words)) for key, words in told.items()]
    more = f"; and {len(wrong) - _TOLD} more" if len(wrong) > _TOLD else ""
    raise error(f"{where}: {'; '.join(wrong[:_TOLD])}{more}")


def finite(number: float) -> float | None:
    """The number, or None where it is infinite: JSON has no infinity."""
    return number if math.isfinite(number) else None


def canonical(data: Any) -> str:
    """JSON with one spelling per value, for comparing and hashing public facts."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(data: Any) -> str:
    """SHA-256 of `canonical(data)`, in hexadecimal."""
    return hashlib.sha256(canonical(data).encode()).hexdigest()


def _without_tags(loc: list[str | int]) -> list[str]:
    """A path as the file has it: after an index or these keys stands the tag of a union."""
    kept = [
        part
        for before, part in zip([None, *loc], loc, strict=False)
        if isinstance(part, int)
        or not (isinstance(before, int) or before in {"normalisation", "mechanism", "engine"})
    ]
    return [str(part) for part in kept]


_BRANCH = re.compile(r"(function-|literal\[|tuple\[|constrained-|column-of-)")


def _keys(model: type[Model]) -> str:
    return ", ".join(model.model_fields)


def _in_words(error: Any) -> tuple[str, str]:
    """One pydantic error as "key 'a.b': " and what, with its mend; never the input itself."""
    # Pydantic names the branches of a union, too: "literal['auto']", "float".
    path = _without_tags([part for part in error["loc"] if not _BRANCH.match(str(part))])
    if path[-1:] == ["[key]"]:
        return f"key '{'.'.join(path[:-1])}': ", "put this name in quotes"
    path = path[:-1] if path[-1:] in (["float"], ["int"], ["str"]) else path
    key = without_secrets(".".join(path))
    kind, message = error["type"], error["msg"].removeprefix("Value error, ")
    bound = next((v for k, v in error.get("ctx", {}).items() if k in {"ge", "gt", "le", "lt"}), 0)
    most = error.get("ctx", {}).get("max_length")
    tags = error.get("ctx", {}).get("expected_tags")
    mends = {
        "missing": "is missing; add it",
        "float_type": "must be a number, written without quotes",
        "int_type": "must be a whole number, written without quotes",
        "dict_type": "must be a table of keys",
        "too_long": f"has more than {most} entries",
        "union_tag_invalid": f"'name' or 'kind' must be one of {tags}",
        "union_tag_not_found": "needs its 'name' or 'kind'",
        "too_short": "must not be empty",
        "model_type": "must be a table of keys",
        "model_attributes_type": "must be a table of keys",
        "string_type": "must be text",
        "tuple_type": "must be a list",
        "finite_number": "must be a finite number",
        "greater_than_equal": f"must be {bound:g} or more",
        "greater_than": f"must be greater than {bound:g}",
        "less_than_equal": f"must be {bound:g} or less",
        "less_than": f"must be less than {bound:g}",
    }
    text = mends.get(kind, message[:1].lower() + message[1:])
    if error["input"] is None and kind.endswith("_type"):
        text = "is empty; write it"
    if kind == "string_pattern_mismatch":
        text = "may hold letters, digits and inner '-' (labels also '.' and '_'), at most 63"
    return (f"key '{key}': " if key else ""), text.replace("input should be", "must be")
