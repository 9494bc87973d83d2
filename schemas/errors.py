"""Typed errors: each names the file, the column or the key, and the mend; never a data value."""

from __future__ import annotations

from typing import Any


def _speakable(words: str) -> str:
    """Words, with whatever a terminal would obey, hide or refuse escaped: they quote names."""
    if words.isprintable():
        return words
    plain = (x if x.isprintable() else x.encode("unicode_escape").decode() for x in words)
    return "".join(plain)


class GramercyError(Exception):
    """Base of every error a user can meet.

    Parameters
    ----------
    what
        What is wrong, naming the file, column or key.
    mend
        What to do about it.
    """

    exit_code = 1

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(_speakable(f"{what} {mend}".strip()))


class Invalid(GramercyError):
    """The input is wrong, and was refused before anything was charged."""

    exit_code = 2


class ContractError(Invalid):
    """A dataset contract that cannot be used."""


class RequestError(Invalid):
    """A release request that cannot be used."""


class UnknownRelease(RequestError, KeyError):
    """A name that no release of the archive has. A `KeyError` as well: a catalogue is a mapping."""

    __str__ = Exception.__str__  # a KeyError would print in quotes


class NoMinimiser(RequestError):
    """An estimate whose objective falls without end: no matrix minimises it.

    Attributes
    ----------
    certificate
        A positive semidefinite matrix along which the objective falls; shape (p, p).
    feasible
        A penalty at which there is a minimiser, or what to multiply a matrix of penalties by; zero
        where none is known.
    """

    certificate: Any = None
    feasible: float = 0.0


class TableError(Invalid):
    """A raw table that does not have the shape its contract declares."""


class Refused(GramercyError):
    """The input is well formed, and the answer is no."""

    exit_code = 2


class BudgetRefused(Refused):
    """The charge does not fit what is left of the budget."""


class GuaranteeRefused(Refused):
    """The exact guarantee of a mechanism's noise is weaker than what was asked for."""


class TermsChanged(Refused):
    """A contract that differs from what the data set was registered with."""


class LateRun(Refused):
    """A scheduled run so late that its version's label would be given to data of another day."""


class SpentFailure(Refused):
    """A charge was made for this release and nothing was published: it stays spent."""


class Discrepancies(Refused):
    """An audit found what cannot be."""


class BundleError(Invalid):
    """A bundle that is not what was sealed; there is no other mend than another copy."""

    def __init__(
        self, what: str, mend: str = "Take it from another copy, or ask its curator."
    ) -> None:
        super().__init__(what, mend)


class LedgerError(GramercyError):
    """The ledger cannot be read or written."""


class UntrustedLedger(Refused, LedgerError):
    """A ledger that may have forgotten what was charged: a copy, an older one, or a changed one."""


class ArchiveError(GramercyError):
    """The archive cannot be read or written."""


class SamplerError(GramercyError):
    """The noise sampler failed its self-test."""


class ServerError(GramercyError):
    """The Prefect server cannot be reached, or does not answer."""


class MissingPackages(GramercyError, ImportError):
    """Packages of an extra that is not installed; `except ImportError` catches it as well."""


class StepFailed(GramercyError):
    """A step failed for a reason that may carry private values, so only its type is told."""
