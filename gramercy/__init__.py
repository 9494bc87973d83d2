"""Gramercy: ``gramercy.open(path)`` reads releases; the ``gramercy`` command publishes them."""

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
    UnknownLevels,
    UnknownName,
    UnknownRelease,
    WithdrawnRelease,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gramercy.api.catalogue import Catalogue, Keys
    from gramercy.api.periods import PooledRelease
    from gramercy.api.release import Release
    from gramercy.api.steps import StepsRelease
    from gramercy.schemas.evidence import PooledRows

__version__ = "0.2.0.dev0"

__all__ = [
    "ArchiveError",
    "BudgetRefused",
    "BundleError",
    "ContractError",
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
    "UnknownLevels",
    "UnknownName",
    "UnknownRelease",
    "WithdrawnRelease",
    "open",
    "pool",
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


def pool(
    releases: Sequence[Release | StepsRelease], rows: PooledRows | None = None
) -> PooledRelease:
    """Pool releases of one data set, or of several; see `gramercy.api.periods.PooledRelease`.

    Post-processing, at no privacy cost. Releases of one table (one data set, version and curator)
    share the sampling error, so they are averaged with weights inverse to the variance of their
    noise. Tables of different data sets or curators are taken to have no row in common, and to be
    from one population; their weights are inverse to the variance from noise and sampling together.

    Parameters
    ----------
    releases
        Two or more opened releases with the same columns, normalised in the same way. Of clipped
        rows with an intercept, centres, scales and radii may differ. Also the last steps of
        cumulative series of different data sets.
    rows
        ``same`` if all releases are of the same rows, ``disjoint`` if no two of them have a row in
        common. Needed for several versions of one data set, unless their periods differ.

    Raises
    ------
    RequestError
        If they cannot be pooled, with the reason; for instance if one of them was withdrawn.

    Examples
    --------
    >>> import gramercy
    >>> release = gramercy.open(archive).latest("toy")
    >>> gramercy.pool([release])
    Traceback (most recent call last):
    gramercy.schemas.errors.RequestError: GRM-580: A pool needs two or more different releases. ...
    """
    from gramercy.api.periods import PooledRelease

    return PooledRelease(releases, rows)
