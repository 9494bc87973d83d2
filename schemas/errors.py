"""Exceptions. Each carries a stable code, a sentence, a hint and facts; never a data value.

They are raised by calling a family of `gramercy.schemas.families`, which lists all codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self


class UnitRows(UserWarning):
    """Correlations of rows divided by their own length are not those of the table."""


class UnknownLevels(UserWarning):
    """Rows with a value that is not a declared level of its column; they are not predicted."""


class WithdrawnRelease(UserWarning):
    """A release whose curator asks everyone to stop using it."""


def printable(text: str) -> str:
    """Escape characters that a terminal would execute, hide or reject, in names from outside."""
    if text.isprintable():
        return text
    return "".join(x if x.isprintable() else x.encode("unicode_escape").decode() for x in text)


class GramercyError(Exception):
    """Base of every error that a user can meet.

    Parameters
    ----------
    sentence
        What is wrong; it names the file, column, key or option.
    hint
        What to do about it.
    code
        Stable code, such as ``GRM-101``; see ``gramercy explain``.
    facts
        The names and numbers in the sentence, for programs.
    """

    exit_code = 1

    def __init__(
        self,
        sentence: str = "",
        hint: str = "",
        *,
        code: str = "",
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(sentence, hint)  # `pickle` and `copy` recreate the error from these
        self.sentence = printable(sentence)
        self.hint = printable(hint)
        self.code = code
        self.facts = dict(facts or {})
        self.details: tuple[InvalidValue, ...] = ()

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.code else self.message

    @property
    def message(self) -> str:
        """The sentence and the hint, without the code; then the details, one per line."""
        first = f"{self.sentence} {self.hint}".strip()
        omitted = self.facts.get("left_out")
        last = [f"  ... and {omitted} more"] if omitted else []
        return "\n".join([first, *(f"  {each.at_key()}" for each in self.details), *last])

    def without_history(self) -> Self:
        """The same error without cause, context and notes, which may quote private values.

        Not `copy.copy`: once `distributed` has loaded tblib, copies keep their causes.
        """
        other = type(self)()
        vars(other).update({name: x for name, x in vars(self).items() if name != "__notes__"})
        other.args = self.args
        return other

    def renamed(self, old: str, new: str) -> Self:
        """A copy with `old` replaced by `new`, such as the path of a local copy by the URL."""
        other = self.without_history()
        other.sentence, other.hint = self.sentence.replace(old, new), self.hint.replace(old, new)
        other.facts = {
            name: fact.replace(old, new) if isinstance(fact, str) else fact
            for name, fact in self.facts.items()
        }
        other.args = (other.sentence, other.hint)
        return other


class Invalid(GramercyError):
    """The input is wrong, and was refused before anything was charged."""

    exit_code = 2


class InvalidValue(Invalid, ValueError):
    """A value of a key in a file, or of an argument in Python, that is not allowed.

    Attributes
    ----------
    key
        Path of the key in its file, such as ``columns.age.lower``; empty for an argument.
    """

    key = ""

    def at_key(self) -> str:
        """One line that names the key, for a list of everything that is wrong with a file."""
        return f"{self.key and f'{self.key}: '}{self.message} ({self.code})"


class ContractError(Invalid):
    """A dataset contract that cannot be used."""


class RequestError(Invalid):
    """A release request or a command that cannot be carried out."""


class UnknownRelease(RequestError, KeyError):
    """No release has this name. It is also a `KeyError`, because a catalogue is a mapping."""


class UnknownName(RequestError, KeyError, AttributeError):
    """No result has this name.

    It is also a `KeyError`, because results are mappings, and an `AttributeError`.
    """


class NoMinimiser(RequestError):
    """An estimate whose objective is unbounded below: no matrix minimises it.

    Attributes
    ----------
    certificate
        A positive semidefinite matrix along which the objective falls; shape (p, p).
    feasible
        A penalty at which there is a minimiser, or the factor for a matrix of penalties; zero where
        none is known.
    """

    certificate: Any = None
    feasible: float = 0.0


class TableError(Invalid):
    """A raw table that does not have the shape its contract declares."""


class Refused(GramercyError):
    """A well-formed request that is refused."""

    exit_code = 2


class BudgetRefused(Refused):
    """The charge exceeds what is left of the budget."""


class GuaranteeRefused(Refused):
    """The exact guarantee of a mechanism's noise is weaker than what was asked for."""


class TermsChanged(Refused):
    """A contract that differs from the one under which the data set was registered."""


class LateRun(Refused):
    """A scheduled run so late that its version label would name data of another day."""


class SpentFailure(Refused):
    """A charge was made for this release and nothing was published; the charge stays spent."""


class Discrepancies(Refused):
    """An audit found records that contradict each other."""


class BundleError(Invalid):
    """A bundle that differs from what was sealed."""


class LedgerError(GramercyError):
    """The ledger cannot be read or written."""


class UntrustedLedger(Refused, LedgerError):
    """A ledger that may lack charges: a copy, an older version or a changed one."""


class ArchiveError(GramercyError):
    """The archive cannot be read or written."""


class SamplerError(GramercyError):
    """The noise sampler failed its self-test."""


class Interrupted(GramercyError):
    """The user has interrupted the command."""

    exit_code = 130


class ServerError(GramercyError):
    """The Prefect server cannot be reached or does not answer."""


class MissingPackages(GramercyError, ImportError):
    """Packages of an extra that is not installed; `except ImportError` catches it as well."""


class StepFailed(GramercyError):
    """A step failed for a reason that may quote private values; only its type is reported."""
