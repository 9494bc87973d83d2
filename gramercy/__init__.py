"""Gramercy: ``gramercy.open(path)`` reads releases; the ``gramercy`` command publishes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramercy.schemas.errors import (
    ArchiveError,
    BudgetRefused,
    BundleError,
    ContractError,
    FormerName,
    GramercyError,
    GuaranteeRefused,
    Invalid,
    InvalidValue,
    LateRun,
    LedgerError,
    MissingPackages,
    NoMinimiser,
    Refused,
    RequestError,
    SamplerError,
    ServerError,
    SpentFailure,
    StepFailed,
    TableError,
    TermsChanged,
    UnitRows,
    UnknownRelease,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gramercy.api.catalogue import Catalogue, Keys

__version__ = "0.2.0.dev0"

__all__ = [
    "ArchiveError",
    "BudgetRefused",
    "BundleError",
    "ContractError",
    "FormerName",
    "GramercyError",
    "GuaranteeRefused",
    "Invalid",
    "InvalidValue",
    "LateRun",
    "LedgerError",
    "MissingPackages",
    "NoMinimiser",
    "Refused",
    "RequestError",
    "SamplerError",
    "ServerError",
    "SpentFailure",
    "StepFailed",
    "TableError",
    "TermsChanged",
    "UnitRows",
    "UnknownRelease",
    "open",
]


def open(path: str | Path, key: Keys | None = None) -> Catalogue:
    """Open a catalogue of verified releases; see `gramercy.api.catalogue.Catalogue`.

    Parameters
    ----------
    path
        Folder or URL of the archive, such as ``s3://bucket/path``.
    key
        File of the curator's public key, or several, as listed by ``gramercy keys``.

    Raises
    ------
    RequestError
        If the archive does not exist, or a file is not a public key.

    Examples
    --------
    >>> import gramercy
    >>> gramercy.open(archive)["toy/v1-r1"].noise.family
    'gaussian-isotropic'
    >>> gramercy.open("nowhere")
    Traceback (most recent call last):
    gramercy.schemas.errors.RequestError: GRM-404: nowhere is not an archive. Check the path.
    """
    from gramercy.api.catalogue import Catalogue

    return Catalogue(path, key)
