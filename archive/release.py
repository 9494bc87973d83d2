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
    raw, projected
        The matrix as released, and the nearest one that can be; shape (p, p).
    denoised
        With the eigenvalues shrunk as the noise law says is best, where it says so.
    sha256
        Digest of SHA256SUMS.
    """

    manifest: ReleaseManifest
    raw: Array
    projected: Array
    denoised: Array | None
    sha256: str

    @property
    def unbiased(self) -> Array:
        """The matrix as released, less the noise's mean; shape (p, p)."""
        mean = self.manifest.noise.mean
        return self.raw - mean * np.eye(len(self.raw)) if mean else self.raw

    @property
    def deviations(self) -> Array:
        """Standard deviation of the noise on every entry, shape (p, p).

        Of noisy rows to first order: they follow from the matrix itself, taken as projected.
        """
        law, p = self.manifest.noise, len(self.raw)
        if law.family != "noisy-rows":
            return law.deviations(p)
        return law.row_deviations(np.diag(self.projected), self.manifest.rows.value)

    @property
    def repaired(self) -> Array:
        """The best that post-processing makes of it: denoised, else projected; shape (p, p)."""
        return self.projected if self.denoised is None else self.denoised

    @property
    def repair(self) -> str:
        """What `repaired` is."""
        return "projected" if self.denoised is None else "denoised"


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


def write_release(
    folder: Path, manifest: ReleaseManifest, raw: Array, projected: Array, denoised: Array | None
) -> None:
    """Fill a folder, empty but for published rows, with a release."""
    matrices = [raw, projected] if denoised is None else [raw, projected, denoised]
    for stem, matrix in zip(stems(manifest), matrices, strict=True):
        write_matrix(folder, stem, matrix, manifest.names)
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
    raw, projected, *denoised = (read_matrix(folder, s, manifest.names) for s in stems(manifest))
    return ReleaseBundle(manifest, raw, projected, denoised[0] if denoised else None, sha256)


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


def stems(manifest: ReleaseManifest) -> list[str]:
    """Names of a release's matrices: as released, projected, and denoised where that is known."""
    stem = "precision" if manifest.kind == "precision" else "second_moment"
    denoised = [f"{stem}_denoised"] if manifest.noise.invariant else []
    return [stem, f"{stem}_projected", *denoised]


def rows_file(manifest: ReleaseManifest) -> str | None:
    """The file of published rows or reports, where there is one."""
    return f"{manifest.kind}.parquet" if manifest.kind in {"rows", "reports"} else None


def published_columns(manifest: ReleaseManifest) -> list[str]:
    """Columns of the published rows: those of the matrix, or for reports its upper triangle."""
    names = manifest.names
    if manifest.kind != "reports":
        return names
    i, j = np.triu_indices(len(names))
    return [f"{names[a]} * {names[b]}" for a, b in zip(i, j, strict=True)]


def _release_files(manifest: ReleaseManifest) -> list[str]:
    p = len(manifest.names)
    rows = rows_file(manifest)
    files = [file for stem in stems(manifest) for file in matrix_files(stem, p)]
    return [*([rows] if rows else []), *files, CARD]
