"""Numbers as pages write them, ε = 0.5 (δ = 10⁻⁶); terminals write epsilon=0.5, delta=1e-06."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from gramercy.schemas.errors import GramercyError
from gramercy.schemas.problem import Notice

_MOST_DECIMALS, _LARGE = 8, 1e15  # of plain numbers
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_SYMBOLS = {"epsilon": "ε", "delta0": "δ₀", "delta": "δ", "mu": "μ"}
_DIGITS = 6  # as many as messages have
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
# Not keys with a path, such as mechanism.epsilon, nor parts of other names.
_NAMED = rf"(?<![\w.-])({'|'.join(_SYMBOLS)})(?!\w)(?: ?= ?({_NUMBER})| ({_NUMBER})(?![\w:]))?"
_QUOTED = r"(?<!\w)'[^']*'"  # keys, values and commands


def significant(number: float, digits: int) -> str:
    """A number with this many significant digits, and with powers of ten as superscripts.

    Examples
    --------
    >>> significant(0.000001, 3), significant(2.5e-7, 2), significant(1234.0, 2)
    ('10⁻⁶', '2.5·10⁻⁷', '1234')
    """
    if math.isnan(number):
        return "–"
    text = f"{number:.{digits}g}"
    if 1 <= abs(number) < 1e6 and "e" in text:
        text = f"{number:.0f}"
    if "e" not in text:
        return text.replace("-", "−")
    mantissa, _, exponent = text.partition("e")
    raised = str(int(exponent)).translate(_SUPERSCRIPTS)
    factor = mantissa.removesuffix("1") if mantissa in {"1", "-1"} else f"{mantissa}·"
    return f"{factor}10{raised}".replace("-", "−")


def epsilon_delta(epsilon: float, delta: float) -> str:
    """An (epsilon, delta) pair.

    Examples
    --------
    >>> epsilon_delta(0.5, 1e-6)
    'ε = 0.5 (δ = 10⁻⁶)'
    """
    return f"ε = {significant(epsilon, 4)} (δ = {significant(delta, 3)})"


def to_precision(number: float, error: float) -> str:
    """A plain number with as many decimals as two significant digits of its error have.

    Without a positive error it has four significant digits. Powers of ten are for numbers that
    would have more than eight decimals, or be 10^15 and more.

    Examples
    --------
    >>> to_precision(54095.484, 150.1), to_precision(0.28137, 0.0064), to_precision(120.0, 0.0)
    ('54095', '0.2814', '120')
    """
    if not math.isfinite(number):
        return "" if math.isnan(number) else str(number)
    if error > 0 and math.isfinite(error):
        decimals = max(1 - math.floor(math.log10(error)), 0)
    else:
        size = math.floor(math.log10(abs(number))) if number else 0
        decimals = max(3 - size, 0)
    if decimals > _MOST_DECIMALS or abs(number) >= _LARGE:
        return f"{number:.4g}"
    text = f"{number:.{decimals}f}"
    return text if error > 0 else text.rstrip("0").rstrip(".") if "." in text else text


def shortened(name: str, most: int = 24) -> str:
    """A name that fits next to a figure; the middle is left out, as names often share a start.

    Examples
    --------
    >>> shortened("age"), shortened("systolic blood pressure at visit 2")
    ('age', 'systolic blo… at visit 2')
    """
    half = most // 2
    return name if len(name) <= most else f"{name[:half]}…{name[1 - most + half :]}"


def shortened_pair(first: str, second: str, most: int = 40) -> str:
    """Two names that fit next to a figure; both stay recognisable.

    Examples
    --------
    >>> shortened_pair("age", "income")
    'age, income'
    >>> shortened_pair("systolic blood pressure at visit 2", "fasting glucose at visit 2")
    'systolic …t visit 2, fasting g…t visit 2'
    """
    pair = f"{first}, {second}"
    of_one = most // 2 - 1
    return pair if len(pair) <= most else f"{shortened(first, of_one)}, {shortened(second, of_one)}"


def in_symbols(text: str, verbatim: Iterable[str] = ()) -> str:
    """A message with ε, δ and μ in place of their names, and with powers of ten.

    Parameters
    ----------
    verbatim
        Names from outside that it contains, such as a column called delta: they stay as they are,
        and so does text in quotes.

    Examples
    --------
    >>> in_symbols("At delta=1e-06, epsilon=0.5 is left: set 'mechanism.epsilon'.")
    "At δ = 10⁻⁶, ε = 0.5 is left: set 'mechanism.epsilon'."
    """
    names = sorted({each for each in verbatim if re.search(_NAMED, each)}, key=len, reverse=True)
    kept = "|".join([*(rf"(?<!\w){re.escape(name)}(?!\w| ?=)" for name in names), _QUOTED])

    def in_symbol(match: re.Match[str]) -> str:
        kept_text, name, equal, following = match.groups()
        if kept_text is not None:
            return kept_text
        number = equal or following
        value = f" = {significant(float(number), _DIGITS)}" if number else ""
        return f"{_SYMBOLS[name]}{value}"

    return re.sub(f"({kept})|{_NAMED}", in_symbol, text)


_THOUSANDS = r"(?<![\w.])\d(?:\.\d+)?e\+0\d(?!\w)"  # such as 2.23e+04


def message_in_symbols(problem: GramercyError | Notice) -> str:
    """The sentence and the hint of a problem, for a page: large numbers have all their digits."""
    text = in_symbols(problem.message, _texts(problem.facts.values()))
    return re.sub(_THOUSANDS, lambda found: f"{float(found[0]):.0f}", text)


def _texts(facts: Iterable[object]) -> Iterator[str]:
    for each in facts:
        if isinstance(each, str):
            yield each
        elif isinstance(each, tuple | list):
            yield from _texts(each)
