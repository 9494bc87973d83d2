"""Gramercy's front door: ``gramercy.open(url)`` for analysts, the ``gramercy`` command for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramercy.schemas.errors import (
    ArchiveError,
    BudgetRefused,
    BundleError,
    ContractError,
    GramercyError,
    GuaranteeRefused,
    Invalid,
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
    "GramercyError",
    "GuaranteeRefused",
    "Invalid",
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
    "UnknownRelease",
    "open",
]


def open(path: str | Path, key: Keys | None = None) -> Catalogue:
    """Open a catalogue of verified releases; see `gramercy.api.catalogue.Catalogue`.

    Parameters
    ----------
    path
        The archive's folder, or its URL, as ``s3://bucket/path``.
    key
        The curator's public key, or several: paths of the files that ``gramercy keys`` names.

    Raises
    ------
    RequestError
        If there is no such archive, or a file holds no public key.

    Examples
    --------
    >>> import gramercy
    >>> gramercy.open(archive)["toy/v1-r1"].noise.family
    'gaussian-isotropic'
    >>> gramercy.open("nowhere")
    Traceback (most recent call last):
    gramercy.schemas.errors.RequestError: nowhere: is not an archive. Give the path of its folder.
    """
    from gramercy.api.catalogue import Catalogue

    return Catalogue(path, key)
