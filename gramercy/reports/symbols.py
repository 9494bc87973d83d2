"""Messages in the notation of pages: ε = 0.5 for the epsilon=0.5 of terminals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gramercy.common.notation import significant
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.problem import Notice

_SYMBOLS = {"epsilon": "ε", "delta0": "δ₀", "delta": "δ", "mu": "μ"}
_DIGITS = 6  # as many as messages have
_NUMBER = r"-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?"
# Not keys with a path, such as mechanism.epsilon, nor parts of other names.
_NAMED = rf"(?<![\w.-])({'|'.join(_SYMBOLS)})(?!\w)(?: ?= ?({_NUMBER})| ({_NUMBER})(?![\w:]))?"
_QUOTED = r"(?<!\w)'[^']*'"  # keys, values and commands


def in_symbols(text: str, verbatim: Iterable[str] = ()) -> str:
    """A message with ε, δ and μ in place of their names, and with powers of ten.

    Parameters
    ----------
    text
        The message.
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
    return re.sub(f"({kept})|{_NAMED}", _symbol, text)


def message_in_symbols(problem: GramercyError | Notice) -> str:
    """The sentence and the hint of a problem, for a page."""
    return in_symbols(problem.message, _texts(problem.facts.values()))


def _symbol(match: re.Match[str]) -> str:
    kept, name, equal, following = match.groups()
    if kept is not None:
        return kept
    number = equal or following
    return f"{_SYMBOLS[name]} = {significant(float(number), _DIGITS)}" if number else _SYMBOLS[name]


def _texts(facts: Iterable[object]) -> Iterator[str]:
    for each in facts:
        if isinstance(each, str):
            yield each
        elif isinstance(each, tuple | list):
            yield from _texts(each)
