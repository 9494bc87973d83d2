"""What to write in place of a value of the wrong kind in a contract or a request.

One rule for each kind of value. A rule may quote a number, a word for true or false, and nothing
else: other texts could be a password in a URL, or a row of a table that was named by mistake.
"""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from gramercy.schemas import families
from gramercy.schemas.errors import InvalidValue

# How keys are written whose values are lists or have keys of their own; `*`: every key in them.
EXAMPLES = {
    "columns": "columns: {age: {lower: 0, upper: 120}, sex: {levels: [F, M]}}",
    "columns.*": "{lower: 0, upper: 120} for numbers, or {levels: [F, M]} for categories",
    "budget": "budget: {epsilon: 1, delta: 1e-6}",
    "source": "source: {path: table.csv}",
    "period": "period: {column: visited}",
    "rows_by_period": "rows_by_period: {2026-11: 900}",
    "exclude": "exclude: [name_of_a_column]",
    "missing": "missing: [-9]",
    "levels": "levels: [F, M]",
    "units": 'units: ["kg"]',
    "mechanism": "mechanism: {name: gaussian, epsilon: 0.5, delta: 1e-6}",
    "normalisation": "normalisation: {kind: clip, radius: 3}",
    "cumulative": "cumulative: {every: week, lag: 7}",
    "estimates": "estimates: [{name: ridge}]",
}
# Other words for known keys.
MEANT = {
    **dict.fromkeys(("min", "minimum", "low"), "lower"),
    **dict.fromkeys(("max", "maximum", "high"), "upper"),
    **dict.fromkeys(("categories", "values", "codes", "factor"), "levels"),
    **dict.fromkeys(("na", "nan", "na_values", "sentinel", "sentinels"), "missing"),
    **dict.fromkeys(("file", "path", "table", "data"), "source"),
    **dict.fromkeys(("sep", "delimiter"), "separator"),
    **dict.fromkeys(("skip", "skiprows", "header_row"), "header"),
    **dict.fromkeys(("n", "nrows", "count"), "rows"),
}

_NUMBER = re.compile(r"([-+]?\d[\d.,'’ _\u00a0\u202f]{0,30}|[-+]?\.\d{1,20})(e[-+]?\d{1,3})?", re.I)
_GROUPS = re.compile(r"[-+]?\d{1,3}([.,]\d{3})+")
_WORDS = {
    **dict.fromkeys(("true", "yes", "y", "on"), "true"),
    **dict.fromkeys(("false", "no", "n", "off"), "false"),
}


def numbers_meant(text: str) -> list[str]:
    """The numbers that a text may stand for, as YAML writes them; empty if it is not one.

    >>> numbers_meant("0,5"), numbers_meant("1 234,5"), numbers_meant("4,000")
    (['0.5'], ['1234.5'], ['4000', '4.000'])
    >>> numbers_meant("120 %"), numbers_meant("100 kg"), numbers_meant("many")
    (['120', '1.2'], ['100'], [])
    """
    bare = text.strip()
    match = _NUMBER.match(bare)
    rest = bare[match.end() :].strip() if match else ""
    if match is None or len(rest) > 5 or any(map(str.isdigit, rest)):
        return []
    digits, exponent = re.sub("['’ _\u00a0\u202f]", "", match[1]), match[2] or ""
    marks = [each for each in digits if each in ".,"]
    if len(set(marks)) == 2:  # the last one is the decimal mark
        readings = ["".join(digits.rsplit(marks[-1], 1)[:1]).translate(_MARKS)]
        readings[0] += f".{digits.rsplit(marks[-1], 1)[1]}"
    elif len(marks) > 1 or (marks == [","] and _GROUPS.fullmatch(digits)):
        readings = [digits.translate(_MARKS)]
        readings += [digits.replace(",", ".")] if len(marks) == 1 else []
    else:
        readings = [digits.replace(",", ".")]
    readings = [each.removesuffix(".") + exponent for each in readings]
    try:
        shares = [f"{float(each) / 100:g}" for each in readings] if rest == "%" else []
    except ValueError:
        return []
    return readings + shares


_MARKS = str.maketrans("", "", ".,")


def not_a_number(value: Any, path: Sequence[str], *, whole: bool) -> InvalidValue:
    """A value that must be a number, and is not."""
    if "missing" in path[:-1] and isinstance(value, str) and not numbers_meant(value):
        return families.VALUE(
            "Only numbers are listed here.",
            "Remove this text: cells that are not numbers are missing without being listed.",
        )
    expected = "a whole number such as 20000" if whole else "a number such as 0.5"
    if isinstance(value, datetime.date):
        return families.VALUE(
            "Must be {expected}, not a date.",
            "For a column of dates, write 'unit: days since 1970-01-01' next to 'lower' and "
            "'upper', which may then be dates.",
            expected=expected,
        )
    meant = numbers_meant(str(value)) if isinstance(value, str | float) else []
    if whole:
        meant = [each.removesuffix(".0") for each in meant]
        meant = [each for each in meant if "." not in each]
    if not meant:
        return families.VALUE(
            "Must be {expected}, without quotes, units and separators.", expected=expected
        )
    return families.VALUE(
        "Must be {expected}, without quotes, units and separators.",
        "Write {write}.",
        expected=expected,
        write=" or ".join(meant),
    )


def not_a_boolean(value: Any) -> InvalidValue:
    """A value that must be true or false, and is not."""
    word = _WORDS.get(str(value).strip("\"'“”„ ").lower())
    if word is None:
        return families.VALUE("Must be true or false.")
    return families.VALUE("Must be true or false.", "Write {write}, without quotes.", write=word)


def not_structured(path: Sequence[str], expected: str) -> InvalidValue:
    """A value that must be a list or have keys, and does not."""
    example = example_of(path)
    if not example:
        return families.VALUE("Must be {expected}.", expected=expected)
    return families.VALUE(
        "Must be {expected}.", "Write {example}.", expected=expected, example=example
    )


def example_of(path: Sequence[str]) -> str:
    """How a key is written; empty if that is not known."""
    last, parent = ([""] * 2 + [*path])[-1], ([""] * 2 + [*path])[-2]
    return EXAMPLES.get(f"{parent}.*", EXAMPLES.get(last, ""))


def not_a_label(small: bool) -> InvalidValue:
    """A text that must be a label, and is not."""
    if small:
        return families.VALUE(
            "Use small letters, digits and inner hyphens only, at most 63, such as heart-clinic."
        )
    return families.VALUE(
        "Use letters, digits, inner hyphens, '.' and '_' only, at most 63, such as 2026-11.v2."
    )


def decimal_comma() -> InvalidValue:
    """A key that is a number without a value, such as 5 in ``{lower: 0,5}``."""
    return families.KEY(
        "A comma begins the next key, so a number must not contain one.",
        "Write decimals with a point, such as 0.5, and thousands without a separator: 20000.",
    )


def as_yaml(value: Any) -> str:
    """A public fact on one line, as a contract states it.

    >>> as_yaml({"q_1": {"lower": 0.0, "levels": ["A", "no: b", "1"]}})
    '{q_1: {lower: 0, levels: [A, "no: b", "1"]}}'
    """
    if isinstance(value, Mapping):
        inner = (f"{as_yaml(key)}: {as_yaml(each)}" for key, each in value.items())
        return f"{{{', '.join(inner)}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(as_yaml, value))}]"
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return str(int(value))
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _READ_AS_OTHER:
        return value
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in quoted)


_EXACT = 1 << 53
_READ_AS_OTHER = {"null", *_WORDS}
# Texts that need no quotes, such as names and relative paths.
_PLAIN = re.compile(r"(?:\.{0,2}/)*[^\W\d](?:[\w./()*=-]| (?=[\w(]))*")
