"""Bounds and levels, as a steward types them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace

from gramercy.cli.draft.drafting import Column
from gramercy.cli.draft.prompts import ask_text, until_valid
from gramercy.schemas import families
from gramercy.schemas.column import Column as Bounds
from gramercy.schemas.column import Levels
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import parse


def _answer_not_bounds() -> RequestError:
    return families.DRAFT(
        "The answer must be two numbers, the lower and the upper bound.",
        "Write them such as 0 100.5, with a decimal point, or press Enter for a column without "
        "bounds.",
    )


Columns = Mapping[str, Column]

_BETWEEN_BOUNDS = re.compile(r"\s*(?:,|;|\bto\b|\s)\s*")


def ask_bounds(columns: Columns) -> dict[str, Column]:
    """The columns as numbers, with the bounds that are answered."""

    def ask_once() -> dict[str, Column]:
        answer = ask_text("    lower and upper bound, such as 0 100 (Enter: no bounds)", "")
        lower, upper = _bounds(answer) if answer else (None, None)
        parse(Bounds, {"lower": lower, "upper": upper}, "bounds", RequestError)
        return {
            name: replace(column, lower=lower, upper=upper, levels=None, published=True)
            for name, column in columns.items()
        }

    return until_valid(ask_once)


def ask_levels(columns: Columns) -> dict[str, Column]:
    """The columns as categories, with the levels that are answered."""

    def ask_once() -> dict[str, Column]:
        texts = split_levels(ask_text("    levels, separated by commas, such as low, high"))
        numbers = [_as_number(text) for text in texts]
        answered = {}
        for name, column in columns.items():
            levels = texts if column.kind == "text" or None in numbers else numbers
            parsed = parse(Levels, {"levels": levels}, "levels", RequestError)
            answered[name] = replace(
                column, levels=parsed.levels, lower=None, upper=None, published=True
            )
        return answered

    return until_valid(ask_once)


def split_levels(answer: str) -> list[str]:
    """Levels separated by commas or semicolons; or, if all of them are numbers, by blanks.

    Examples
    --------
    >>> split_levels("north east, south"), split_levels("1 2 3")
    (['north east', 'south'], ['1', '2', '3'])
    """
    parts = [part.strip() for part in re.split(r"[,;]", answer) if part.strip()]
    words = answer.split()
    blanks_separate = len(parts) == 1 and all(map(_is_number, words))
    return words if blanks_separate else parts


def _bounds(answer: str) -> tuple[float, float]:
    try:
        lower, upper = map(float, _BETWEEN_BOUNDS.split(answer))
    except ValueError:
        raise _answer_not_bounds() from None
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise _answer_not_bounds()
    return lower, upper


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _as_number(text: str) -> float | None:
    """The text as a number; None if it is not one, or is not the usual spelling of it (007)."""
    return float(text) if _is_number(text) and format(float(text), ".17g") == text else None
