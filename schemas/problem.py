"""Problem types: each is called with its facts, and returns an exception or a warning.

A problem type is declared once, in a module of `gramercy.schemas.problems`::

    @problem("GRM-301", BudgetRefused, "{dataset}: {needed:g} is needed.", "Raise the budget.")
    def budget_exceeded(dataset: str, needed: float) -> None:
        \"\"\"The charge exceeds what is left of the budget.\"\"\"

``raise budget_exceeded("clinic", 2.0)`` is then checked by the type checker. Codes are stable: a
problem that is dropped leaves its code unused.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from string import Formatter
from typing import Any, Generic, ParamSpec, TypeVar

from gramercy.schemas.errors import GramercyError, printable

P = ParamSpec("P")
T = TypeVar("T", bound="GramercyError | Notice")

CODE = re.compile(r"GRM-\d{3}")


@dataclass(frozen=True)
class Notice:
    """A warning: the work was done, but the user should know something about it.

    Parameters
    ----------
    sentence, hint
        What the user should know, and what to do about it.
    code
        Stable code, such as ``GRM-901``.
    facts
        The names and numbers in the sentence, for programs.
    """

    sentence: str
    hint: str = ""
    code: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def message(self) -> str:
        """The sentence and the hint, without the code."""
        return f"{self.sentence} {self.hint}".strip()


@dataclass(frozen=True)
class Problem(Generic[P, T]):
    """A problem type.

    Parameters
    ----------
    code
        Stable code.
    kind
        Class of the exception, or `Notice` for a warning.
    sentence, hint
        Format strings over the facts: what is wrong, and what to do about it.
    name
        Name of the function that declares it.
    cause
        When the problem occurs.
    signature
        Names and types of the facts.
    """

    code: str
    kind: type[T]
    sentence: str
    hint: str
    name: str
    cause: str
    signature: inspect.Signature

    def __post_init__(self) -> None:
        unknown = self._placeholders() - self.signature.parameters.keys()
        if unknown or not CODE.fullmatch(self.code) or not self.cause:
            raise TypeError(f"problem {self.name}: {self.code}, {unknown or 'needs a cause'}")

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """The exception or the warning with these facts."""
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        facts = {name: _plain(value) for name, value in bound.arguments.items()}
        # Sealed pages contain warnings: their sentences stay as they are.
        shown = len if issubclass(self.kind, Notice) else _shown_of
        formatted = {name: _FormattedFact(value, shown) for name, value in facts.items()}
        sentence, hint = (
            printable(each.format(**formatted)) for each in (self.sentence, self.hint)
        )
        return self.kind(sentence, hint, code=self.code, facts=facts)

    def described(self) -> dict[str, Any]:
        """The entry in the reference; placeholders are the names of facts, in capitals."""
        capitals = {name: _Placeholder(name) for name in self.signature.parameters}
        sentence, hint = (each.format(**capitals) for each in (self.sentence, self.hint))
        return {
            "code": self.code,
            "kind": self.kind.__name__,
            "message": sentence,
            "hint": hint,
            "cause": self.cause,
            "facts": list(self.signature.parameters),
            "exit_code": getattr(self.kind, "exit_code", 0),
        }

    def _placeholders(self) -> set[str]:
        parts = (*Formatter().parse(self.sentence), *Formatter().parse(self.hint))
        return {name for _, name, _, _ in parts if name}


def problem(
    code: str, kind: type[T], sentence: str, hint: str = ""
) -> Callable[[Callable[P, None]], Problem[P, T]]:
    """Declare a problem type: the signature gives its facts, the docstring its cause."""

    def declare(facts: Callable[P, None]) -> Problem[P, T]:
        cause = inspect.cleandoc(facts.__doc__ or "")
        signature = inspect.signature(facts)
        return Problem(code, kind, sentence, hint, facts.__name__, cause, signature)

    return declare


class _Placeholder(str):
    """The name of a fact; any format specification is ignored."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return self.upper().replace("_", " ")


_LISTED = 12  # entries of a sequence in the sentence of an error


def _shown_of(entries: tuple[Any, ...]) -> int:
    """How many entries of a sequence a sentence names; the facts of the error have all."""
    return min(len(entries), _LISTED)


class _FormattedFact:
    """A fact in a sentence: a sequence is joined by commas, other facts have their own format.

    Parameters
    ----------
    value
        The fact.
    shown
        How many entries of a sequence are named.
    """

    def __init__(self, value: Any, shown: Callable[[tuple[Any, ...]], int]) -> None:
        self._value, self._shown = value, shown

    def __format__(self, spec: str) -> str:
        if isinstance(self._value, tuple):
            most = self._shown(self._value)
            rest = len(self._value) - most
            names = ", ".join(format(each, spec) for each in self._value[:most])
            return f"{names}, and {rest} more" if rest else names
        if isinstance(self._value, float) and not spec:
            return format(self._value, "g")
        return format(self._value, spec)


def _plain(value: Any) -> Any:
    """A fact as a JSON value, without characters that a terminal would execute."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return value if isinstance(value, int | float | None) else printable(str(value))
