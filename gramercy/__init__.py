"""Gramercy's front door: ``gramercy.open(path)`` for analysts, the ``gramercy`` command for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schemas.errors import (
    ArchiveError,
    BudgetRefused,
    BundleError,
    ContractError,
    GramercyError,
    GuaranteeRefused,
    Invalid,
    LateRun,
    LedgerError,
    NoMinimiser,
    Refused,
    RequestError,
    SamplerError,
    ServerError,
    SpentFailure,
    StepFailed,
    TableError,
    TermsChanged,
    UnknownRelease,
)

if TYPE_CHECKING:
    from gramercy.catalogue import Catalogue

__version__ = "0.1.0"

__all__ = [
    "ArchiveError",
    "BudgetRefused",
    "BundleError",
    "ContractError",
    "GramercyError",
    "GuaranteeRefused",
    "Invalid",
    "LateRun",
    "LedgerError",
    "NoMinimiser",
    "Refused",
    "RequestError",
    "SamplerError",
    "ServerError",
    "SpentFailure",
    "StepFailed",
    "TableError",
    "TermsChanged",
    "UnknownRelease",
    "open",
]


def open(path: str) -> Catalogue:
    """Open a catalogue of verified releases; see `gramercy.catalogue.Catalogue`."""
    from gramercy.catalogue import Catalogue

    return Catalogue(path)
