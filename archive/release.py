"""Writing and reading the contents of release and estimate bundles."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archive.bundle import check
from archive.card import card_text
from archive.matrices import read_matrix, write_matrix
from archive.package import describe, read_manifest
from schemas.manifest import EstimateManifest, ReleaseManifest

Array = NDArray[np.float64]


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


def software() -> dict[str, str]:
    """Versions of what computed a bundle."""
    packages = ("gramercy", "numpy", "scipy", "mpmath", "pyarrow", "prefect")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def write_release(folder: Path, manifest: ReleaseManifest, raw: Array, denoised: Array) -> None:
    """Fill an empty folder with a release."""
    files = write_matrix(folder, "second_moment", raw, manifest.names)
    files += write_matrix(folder, "second_moment_denoised", denoised, manifest.names)
    text = card_text(manifest, files)
    (folder / "CARD.md").write_text(text, encoding="utf-8", newline="\n")
    name = f"{manifest.dataset.id}-{manifest.release}"
    describe(folder, name, manifest.dataset.title, [*files, "CARD.md"], manifest)


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
    files = write_matrix(folder, "precision", precision, manifest.columns)
    name = f"{manifest.dataset.id}-{manifest.release}-{manifest.estimate}"
    title = f"{manifest.dataset.title}: {manifest.estimator['name']} precision matrix"
    describe(folder, name, title, files, manifest)


def read_estimate(folder: Path) -> EstimateBundle:
    """Read an estimate, verified; raises as `read_release` does."""
    sha256 = check(folder)
    manifest = read_manifest(folder, EstimateManifest)
    return EstimateBundle(manifest, read_matrix(folder, "precision", manifest.columns), sha256)
