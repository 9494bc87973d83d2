"""Writing and reading the contents of release and estimate bundles."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from archive.bundle import check
from archive.card import card_text
from archive.matrices import matrix_files, read_matrix, write_matrix
from archive.package import descriptor, read_manifest, write_descriptor
from schemas.errors import BundleError
from schemas.manifest import EstimateManifest, ReleaseManifest, ReportManifest

Array = NDArray[np.float64]

CARD = "CARD.md"
PAGE = "report.html"


@dataclass(frozen=True)
class ReleaseBundle:
    """A release as read back: its seal holds and its formats agree.

    Parameters
    ----------
    manifest
        What it says of itself.
    raw, denoised
        Shape (p, p).
    sha256
        Digest of SHA256SUMS.
    """

    manifest: ReleaseManifest
    raw: Array
    denoised: Array
    sha256: str


@dataclass(frozen=True)
class EstimateBundle:
    """An estimate as read back; see `ReleaseBundle`."""

    manifest: EstimateManifest
    precision: Array
    sha256: str


@dataclass(frozen=True)
class ReportBundle:
    """A report as read back; `page` is HTML."""

    manifest: ReportManifest
    page: str
    sha256: str


def software(*more: str) -> dict[str, str]:
    """Versions of what computed a bundle, and of more packages that had a part in it."""
    packages = ["gramercy", "numpy", "scipy", "mpmath", "pyarrow", "prefect", *more]
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def write_release(folder: Path, manifest: ReleaseManifest, raw: Array, denoised: Array) -> None:
    """Fill an empty folder with a release."""
    write_matrix(folder, "second_moment", raw, manifest.names)
    write_matrix(folder, "second_moment_denoised", denoised, manifest.names)
    (folder / CARD).write_text(release_card(manifest), encoding="utf-8", newline="\n")
    write_descriptor(folder, release_descriptor(folder, manifest))


def release_card(manifest: ReleaseManifest) -> str:
    """The text of CARD.md."""
    return card_text(manifest, _release_files(manifest)[:-1])


def release_descriptor(folder: Path, manifest: ReleaseManifest) -> dict[str, Any]:
    """What datapackage.json says of the files of a release."""
    name = f"{manifest.dataset.id}-{manifest.release}"
    return descriptor(folder, name, manifest.dataset.title, _release_files(manifest), manifest)


def read_release(folder: Path) -> ReleaseBundle:
    """Read a release, verified.

    Raises
    ------
    BundleError
        Naming the file that is not what was sealed.
    """
    sha256 = check(folder)
    manifest = read_manifest(folder, ReleaseManifest)
    raw = read_matrix(folder, "second_moment", manifest.names)
    denoised = read_matrix(folder, "second_moment_denoised", manifest.names)
    return ReleaseBundle(manifest, raw, denoised, sha256)


def write_estimate(folder: Path, manifest: EstimateManifest, precision: Array) -> None:
    """Fill an empty folder with an estimate."""
    write_matrix(folder, "precision", precision, manifest.names)
    write_descriptor(folder, estimate_descriptor(folder, manifest))


def estimate_descriptor(folder: Path, manifest: EstimateManifest) -> dict[str, Any]:
    """What datapackage.json says of the files of an estimate."""
    name = f"{manifest.dataset.id}-{manifest.release}-{manifest.estimate}"
    title = f"{manifest.dataset.title}: {manifest.estimator['name']} precision matrix"
    files = matrix_files("precision", len(manifest.names))
    return descriptor(folder, name, title, files, manifest)


def read_estimate(folder: Path) -> EstimateBundle:
    """Read an estimate, verified; raises as `read_release` does."""
    sha256 = check(folder)
    manifest = read_manifest(folder, EstimateManifest)
    return EstimateBundle(manifest, read_matrix(folder, "precision", manifest.names), sha256)


def write_report(folder: Path, manifest: ReportManifest, page: str) -> None:
    """Fill an empty folder with a report."""
    (folder / PAGE).write_text(page, encoding="utf-8", newline="\n")
    write_descriptor(folder, report_descriptor(folder, manifest))


def report_descriptor(folder: Path, manifest: ReportManifest) -> dict[str, Any]:
    """What datapackage.json says of a report."""
    name = f"{manifest.dataset.id}-{manifest.release}-{manifest.report}"
    return descriptor(folder, name, f"{manifest.dataset.title}: report", [PAGE], manifest)


def read_report(folder: Path) -> ReportBundle:
    """Read a report, verified; raises as `read_release` does."""
    sha256 = check(folder)
    manifest = read_manifest(folder, ReportManifest)
    try:
        page = (folder / PAGE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BundleError(f"{folder / PAGE}: cannot be read.") from None
    return ReportBundle(manifest, page, sha256)


def _release_files(manifest: ReleaseManifest) -> list[str]:
    p = len(manifest.names)
    matrices = [matrix_files(stem, p) for stem in ("second_moment", "second_moment_denoised")]
    return [*matrices[0], *matrices[1], CARD]
