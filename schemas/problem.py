"""Families of problems: each is called with a sentence, a hint and facts.

``raise families.EXCEEDED("The budget of {dataset} is exceeded.", "Raise it.", dataset="clinic")``
returns an exception, or a warning, with the code of its family.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import Formatter
from typing import Any, Generic, TypeVar

from gramercy.schemas.errors import GramercyError, printable

T = TypeVar("T", bound="GramercyError | Notice")


@dataclass(frozen=True)
class Notice:
    """A warning: the work was done, but the user should know something about it."""

    # sentence, hint: what the user should know, and what to do about it
    sentence: str
    hint: str = ""
    code: str = ""  # stable code, such as `GRM-818`
    # the names and numbers in the sentence, for programs
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def message(self) -> str:
        """The sentence and the hint, without the code."""
        return f"{self.sentence} {self.hint}".strip()


@dataclass(frozen=True)
class Family(Generic[T]):
    """A family of problems that have one code."""

    code: str  # stable code
    kind: type[T]  # class of the exception, or `Notice` for a warning

    @property
    def cause(self) -> str:
        """When the problems occur."""
        return _reference()[self.code]["cause"]

    @property
    def remedy(self) -> str:
        """What to do about them in general."""
        return _reference()[self.code]["remedy"]

    def __call__(self, sentence: str, hint: str = "", /, **facts: Any) -> T:
        """The exception or the warning with these facts."""
        plain = {name: _plain(value) for name, value in facts.items()}
        # Sealed pages contain warnings: their sentences stay as they are.
        most = None if issubclass(self.kind, Notice) else _LISTED
        formatted = {name: _FormattedFact(value, most) for name, value in plain.items()}
        said, remedy = (printable(each.format(**formatted)) for each in (sentence, hint))
        return self.kind(said, remedy, code=self.code, facts=plain)

    def described(self) -> dict[str, Any]:
        """The entry in the reference."""
        return {
            "code": self.code,
            "kind": self.kind.__name__,
            "cause": self.cause,
            "remedy": self.remedy,
            "exit_code": getattr(self.kind, "exit_code", 0),
        }


@dataclass(frozen=True)
class Wording(Generic[T]):
    """A problem in fixed words."""

    family: Family[T]  # its family
    # sentence, hint: format strings over the facts
    sentence: str
    hint: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the facts, in the order in which the words first have them."""
        parts = Formatter().parse(f"{self.sentence}{self.hint}")
        return tuple(dict.fromkeys(name for _, name, _, _ in parts if name))

    def __call__(self, *facts: Any) -> T:
        """The exception or the warning with these facts, in the order of `names`."""
        named = dict(zip(self.names, facts, strict=True))
        return self.family(self.sentence, self.hint, **named)


@cache
def _reference() -> dict[str, dict[str, str]]:
    """Cause and remedy of every code."""
    return tomllib.loads(Path(__file__).with_name("error_codes.toml").read_text("utf-8"))


# Entries of a sequence that the sentence of an error names; the facts of the error have all.
_LISTED = 12


class _FormattedFact:
    """A fact in a sentence: a sequence is joined by commas, other facts have their own format."""

    def __init__(self, value: Any, most: int | None) -> None:
        self._value, self._most = value, most

    def __format__(self, spec: str) -> str:
        if isinstance(self._value, tuple):
            shown = self._value[: self._most]
            rest = len(self._value) - len(shown)
            names = ", ".join(format(each, spec) for each in shown)
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
