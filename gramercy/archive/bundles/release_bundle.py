"""Writing and reading release bundles and report bundles."""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.card import card_page
from gramercy.archive.bundles.marginals_file import (
    MARGINALS,
    most_bins,
    read_histograms,
    write_histograms,
)
from gramercy.archive.bundles.matrices import (
    GROUPS,
    SMALL,
    GroupMatrices,
    matrix_files,
    read_groups,
    read_matrix,
    write_groups,
    write_matrix,
)
from gramercy.archive.bundles.package import DESCRIPTOR, descriptor, read_manifest, write_descriptor
from gramercy.archive.bundles.parquet_limits import bounded_bytes
from gramercy.archive.bundles.rows_file import most_row_bytes
from gramercy.archive.seal.bundle import MOST_BYTES, ROWS, check, check_file
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import wordings
from gramercy.schemas.evidence import (
    ROW_LENGTHS,
    Divisor,
    Evidence,
    Fold,
    Histogram,
    LostMatrix,
    ReleaseEvidence,
    last_stage,
)
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.publications import Publication

Array = NDArray[np.float64]

CARD, LOST = "CARD.md", "lost_moments"
_FIXED_BYTES = 16 << 20  # more than a small release has


@dataclass(frozen=True)
class ReleaseBundle:
    """A release as read from disk; its seal is valid, and its formats agree."""

    manifest: ReleaseManifest  # its public facts
    # raw, projected: the matrix as released, and its projection onto the positive semidefinite
    # matrices within the public trace; shape (p, p)
    raw: Array
    projected: Array
    # the matrix with shrunken eigenvalues, shape (p, p); None if the noise law allows none
    denoised: Array | None
    # second moments of disjoint parts of the rows as released, each of shape (p, p), if any
    folds: tuple[Array, ...]
    sha256: str  # digest of SHA256SUMS
    # Noisy histograms from which the constants of the release were computed, if any. A release of
    # histograms alone has matrices of shape (0, 0).
    histograms: tuple[Histogram, ...] = ()
    groups: tuple[GroupMatrices, ...] = ()  # the matrices of groups of rows, if any
    # what clipping took from the rows, in the units of `raw`, shape (p, p); None if not published
    lost: Array | None = None

    @property
    def marginals(self) -> tuple[Histogram, ...]:
        """The histograms of all columns in their last stage; empty if there are none."""
        return last_stage(self.histograms)

    @property
    def unbiased(self) -> Array:
        """The matrix as released minus the mean of the noise; shape (p, p)."""
        mean = self.manifest.noise.mean
        return self.raw - mean * np.eye(len(self.raw)) if mean else self.raw

    @cached_property
    def evidence(self) -> Evidence:
        """The input of estimators."""
        groups = [(each.level, self.of_group(k).evidence) for k, each in enumerate(self.groups)]
        return replace(self._evidence_of_rows, groups=tuple(groups))

    @cached_property
    def _evidence_of_rows(self) -> Evidence:
        facts = self.manifest
        return Evidence(
            raw=self.unbiased,
            repaired=self.repaired,
            law=facts.noise,
            rows=facts.rows.value,
            names=tuple(facts.names),
            columns=facts.source_columns,
            unit=facts.normalisation.unit_rows,
            folds=self._folds,
            trace=facts.trace_bound,
            divisor=self._divisor,
            rows_sd=facts.rows.sd,
            radius=getattr(facts.normalisation, "radius", None),
            present=facts.present_shares,
            histograms=self.histograms,
            lost=self._lost_matrix,
            signs=facts.scaling.signs if facts.scaling else (),
        )

    @property
    def _lost_matrix(self) -> LostMatrix | None:
        facts, rows = self.manifest.lost, self.manifest.lost_rows
        if facts is None or rows is None or self.lost is None:
            return None
        square = rows.radius * rows.radius
        return LostMatrix(
            matrix=square * self.lost,
            sd=square * facts.noise.sd_off_diagonal,
            intercept=facts.intercept,
            cut=rows.cut,
        )

    def rows_of(self, group: str | None) -> ReleaseBundle:
        """The rows of the group of this name, as a release of its own; itself if None."""
        if group is None:
            return self
        names = [each.level for each in self.groups]
        if group not in names:
            release = f"{self.manifest.dataset.id}/{self.manifest.release}"
            raise wordings.unknown_group(release, group, most_similar_first(group, names))
        return self.of_group(names.index(group))

    def of_group(self, index: int) -> ReleaseBundle:
        """The rows of one group, as a release of its own."""
        group, own = self.groups[index], self.manifest.groups[index]
        noise = self.manifest.group_noise(own.rows.value)
        facts = {
            "rows": own.rows,
            "fold_rows": own.fold_rows,
            "noise": noise,
            "lost": self.manifest.lost_of_group(own.rows.value),
            "groups": (),
        }
        return replace(
            self,
            manifest=self.manifest.model_copy(update=facts),
            raw=group.raw,
            projected=group.denoised,
            denoised=group.denoised,
            folds=group.folds,
            # Those of columns are of all rows; that of lengths tells how heavy their tails are.
            histograms=tuple(h for h in self.histograms if h.column == ROW_LENGTHS),
            groups=(),
            lost=group.lost,
        )

    @property
    def release_evidence(self) -> ReleaseEvidence:
        """The evidence with the name and the facts of the release."""
        facts = self.manifest
        name = f"{facts.dataset.id}/{facts.release}"
        return ReleaseEvidence(name, self.sha256, facts, self.evidence)

    @property
    def _divisor(self) -> Divisor:
        facts = self.manifest
        if facts.rows.status == "public":
            return "public"
        return "noisy" if facts.publishes_noisy_count else "itself"

    @property
    def _folds(self) -> tuple[Fold, ...]:
        facts, p = self.manifest, len(self.raw)
        # The noise law is of the sum over all folds; each fold has its share.
        mean = facts.noise.mean * facts.rows.value / facts.folds
        return tuple(
            Fold(moment - mean / part.value * np.eye(p) if mean else moment, part.value)
            for moment, part in zip(self.folds, facts.fold_rows, strict=True)
        )

    @property
    def deviations(self) -> Array:
        """Standard deviation of the noise on every entry, shape (p, p); see `Evidence`."""
        return self._evidence_of_rows.deviations

    @property
    def repaired(self) -> Array:
        """The denoised matrix if there is one, otherwise the projected one; shape (p, p)."""
        return self.projected if self.denoised is None else self.denoised

    @property
    def repair(self) -> str:
        """Which matrix `repaired` is: denoised or projected."""
        return "projected" if self.denoised is None else "denoised"


def software_versions(*packages: str) -> dict[str, str]:
    """Versions of the software that computed a bundle, and of additional packages."""
    versions = {"python": platform.python_version()}
    for package in ("gramercy", "numpy", "scipy", "mpmath", "pyarrow", "prefect", *packages):
        with contextlib.suppress(PackageNotFoundError):  # an extra that is not installed
            versions[package] = _version(package)
    return versions


@cache  # metadata is read from disk
def _version(package: str) -> str:
    return version(package)


def write_release(
    folder: Path,
    manifest: ReleaseManifest,
    matrices: Sequence[Array],
    histograms: Sequence[Histogram] = (),
    groups: Sequence[GroupMatrices] = (),
) -> None:
    """Write a release into a folder that is empty, except for published rows."""
    if groups:
        write_groups(folder, manifest.names, groups)
    if histograms:
        write_histograms(folder, histograms)
    for stem, matrix in zip(stems(manifest), matrices, strict=True):
        write_matrix(folder, stem, matrix, manifest.names, compact=_is_compact(stem))
    (folder / CARD).write_text(release_card(manifest), encoding="utf-8", newline="\n")
    write_descriptor(folder, release_descriptor(folder, manifest))


def release_card(manifest: ReleaseManifest) -> str:
    """The text of CARD.md."""
    return card_page(manifest, _release_files(manifest)[:-1])


def release_descriptor(folder: Path, manifest: ReleaseManifest) -> dict[str, Any]:
    """The content of datapackage.json for a release."""
    name = f"{manifest.dataset.id}-{manifest.release}"
    return descriptor(folder, name, manifest.dataset.title, _release_files(manifest), manifest)


def read_release(folder: Path) -> ReleaseBundle:
    """Read a release, verified."""
    _check_rows_size(folder)
    sha256 = check(folder)
    manifest = read_manifest(folder, ReleaseManifest)
    histograms = _read_histograms(folder, manifest)
    if not manifest.publication.has_matrix:
        none = np.zeros((0, 0))
        return ReleaseBundle(manifest, none, none, None, (), sha256, histograms)
    raw, projected, *rest = (
        read_matrix(folder, stem, manifest.names, compact=_is_compact(stem))
        for stem in stems(manifest)
    )
    lost = rest.pop() if manifest.lost is not None else None
    folds = rest[len(rest) - len(manifest.fold_rows) :]
    denoised = rest[0] if len(rest) > len(folds) else None
    groups = read_groups(folder, manifest)
    return ReleaseBundle(
        manifest, raw, projected, denoised, tuple(folds), sha256, histograms, groups, lost
    )


def _check_rows_size(folder: Path) -> None:
    """Refuse a huge file of published rows if it states fewer rows: hashing it would take long."""
    for name in ROWS:
        path = folder / name
        if path.is_file() and path.stat().st_size > MOST_BYTES:
            manifest = read_release_manifest(folder)
            cells = manifest.dataset.rows * len(published_columns(manifest))
            if path.stat().st_size > bounded_bytes(cells):
                raise wordings.bundle_file_too_large(str(path), bounded_bytes(cells))


def _read_histograms(folder: Path, manifest: ReleaseManifest) -> tuple[Histogram, ...]:
    stages = len(manifest.scaling.stages) if manifest.scaling and manifest.has_histograms else 0
    if stages:
        return read_histograms(folder, manifest.columns, stages)
    if manifest.has_histograms or not manifest.publication.has_matrix:
        raise wordings.not_histograms(str(folder / MARGINALS))
    return ()


def read_release_manifest(folder: Path) -> ReleaseManifest:
    """The manifest of a release, verified; the rest of its bundle is not read."""
    check_file(folder, DESCRIPTOR)
    return read_manifest(folder, ReleaseManifest)


def most_bytes(spec: ReleaseSpec, publication: Publication) -> int:
    """Bytes that the bundle of a planned release may have, with a margin."""
    names, p = sum(len(name.encode()) for name in spec.names), len(spec.names)
    texts = 1024 * p + 8 * names  # of a file, with its description
    size = _FIXED_BYTES + texts
    if publication.has_matrix:
        # Parquet, .npy and CSV, which has at most 25 characters for an entry.
        entry = 40 if p <= SMALL else 16
        size += (4 + spec.folds) * (entry * p * p + texts)
    if spec.by is not None:
        size += spec.groups_count * (1 + spec.folds) * 40 * p * p + texts
    if spec.scaling is not None:
        size += 64 * most_bins(spec.columns, len(spec.scaling.stages))
    if publication.row_columns is not None:
        columns = publication.row_columns(spec.names)
        size += most_row_bytes(columns, spec.dataset.rows) + 256 * len(columns)
    return size


def stems(manifest: ReleaseManifest) -> list[str]:
    """File stems of the matrices: as released, projected, then denoised, folds and lost, if any."""
    stem = manifest.publication.stem
    if not stem:
        return []
    denoised = [f"{stem}_denoised"] if manifest.noise.has_noise else []
    folds = [f"{stem}_fold{k}" for k in range(1, len(manifest.fold_rows) + 1)]
    lost = [LOST] if manifest.lost is not None else []
    return [stem, f"{stem}_projected", *denoised, *folds, *lost]


def _is_compact(stem: str) -> bool:
    """Whether a matrix is in Parquet alone if it is large: if it follows from the noisy one.

    These are two at most, so that a hostile release needs little more memory than its .npy file.
    """
    return stem.endswith(("_projected", "_denoised"))


def published_columns(manifest: ReleaseManifest) -> list[str]:
    """Columns of the published rows or reports; empty if there are none."""
    columns = manifest.publication.row_columns
    return columns(manifest.names) if columns else []


def _release_files(manifest: ReleaseManifest) -> list[str]:
    p = len(manifest.names)
    rows = manifest.publication.rows_file
    files = [
        file
        for stem in stems(manifest)
        for file in matrix_files(stem, p, compact=_is_compact(stem))
    ]
    histograms = [MARGINALS] if manifest.has_histograms else []
    groups = [GROUPS] if manifest.groups else []
    return [*([rows] if rows else []), *files, *groups, *histograms, CARD]
