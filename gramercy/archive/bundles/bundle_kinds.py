"""The kinds of bundles, written and read: releases, estimates, reports, notices of withdrawal.

Tables of estimates are Parquet (canonical) and CSV. The edges of a graph are such a table, and
GraphML. A graph with very many edges, such as that of a ridge estimate, is a matrix in the shape of
a list: it is stored as Parquet alone, which takes a tenth of the space and of the time.

A report has no scripts, forms or frames, and loads nothing. Pages of a hostile archive that would
do more in a browser than show something are refused.
"""

from __future__ import annotations

import contextlib
import html
import math
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.card import card_page
from gramercy.archive.bundles.encoded_file import ENCODED, Encoded, read_encoded
from gramercy.archive.bundles.number_files import (
    GROUP_FILES,
    GROUPS,
    LARGEST,
    MARGINALS,
    SMALL,
    GroupMatrices,
    matrix_files,
    most_bins,
    most_row_bytes,
    read_groups,
    read_histograms,
    read_matrix,
    write_groups,
    write_histograms,
    write_matrix,
)
from gramercy.archive.bundles.package import (
    DESCRIPTOR,
    EDGES,
    descriptor,
    markdown_text,
    not_a_formula,
    read_descriptor,
    read_manifest,
    write_descriptor,
)
from gramercy.archive.bundles.parquet_limits import bounded_bytes, codes_of, read_bounded
from gramercy.archive.seal.bundle import MOST_BYTES, ROWS, SUMS, check, check_file, file_digest
from gramercy.archive.store.archive import Archive
from gramercy.common.disk import error_reason
from gramercy.common.metric import congruence
from gramercy.common.partition import Partition
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.evidence import (
    ALL_LENGTHS,
    Divisor,
    Evidence,
    Fold,
    Histogram,
    LostMatrix,
    MissingMatrix,
    NoiseTerm,
    ReleaseEvidence,
    SeriesSteps,
    as_published,
    last_stage,
    noise_sum,
)
from gramercy.schemas.manifest import (
    EstimateManifest,
    ReleaseManifest,
    ReleaseSpec,
    ReportManifest,
    WithdrawalManifest,
)
from gramercy.schemas.publications import Publication

Array = NDArray[np.float64]


CARD = "CARD.md"
# File stems of the further matrices; see `ReleaseSpec.further_rows`.
FURTHER = {"lost": "lost_moments", "missing": "missing_cells"}
# File stems of a pilot matrix, of its metric, and of the matrix as drawn in it; see `Whitening`.
PILOT, METRIC, WHITENED = "pilot", "metric", "whitened"
_EXACT = 1e-12  # variance of a number without noise
_LEAST_SHARE = 1e-3  # of the rows of a group, with a value
_SMALLEST_RATIO, _LARGEST_ROOT = 1e-12, 1e24  # of eigenvalues of a metric; entries of its inverse
_FIXED_BYTES = 16 << 20  # more than a small release has


@dataclass(frozen=True, eq=False)
class Whitening:
    """The pilot matrix of a release, and its metric."""

    # noisy sum over scaled rows, clipped and divided by the radius, shape (q, q); None with the
    # metric of another release
    pilot: Array | None
    metric: Array  # A, shape (q, q): y = A z for scaled rows z
    # the matrix as drawn, of rows in the metric; None if the metric of scaled columns was kept
    drawn: Array | None = None

    def root_of(self, facts: ReleaseSpec) -> Array | None:
        """What maps matrices that were drawn in the metric to those of scaled columns.

        G with S = G Y G^T, in the units of the released matrix; None if none were.
        """
        if facts.metric_radius is None or facts.radius is None:
            return None
        root = np.linalg.inv(self.metric) * (facts.metric_radius / facts.radius)
        return np.asarray(root, np.float64)

    def maps(self, facts: ReleaseSpec) -> bool:
        """Whether the metric has a moderate inverse, as one of published rows has."""
        values, radius = np.linalg.eigvalsh(self.metric), facts.radius or math.inf
        largest = (facts.metric_radius or radius) / radius
        return bool(
            values[0] > _SMALLEST_RATIO * values[-1] and largest < _LARGEST_ROOT * values[0]
        )


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
    further: Mapping[str, Array] = field(default_factory=dict)  # the further matrices, if any
    size: tuple[float, float] | None = None  # see `Evidence.size`
    whole: ReleaseBundle | None = None  # of a group of rows, the release
    whitening: Whitening | None = None  # the pilot matrix and its metric, if any
    group: str | None = None  # name of the group of rows; None for all rows
    first_step: int = 0  # of a cumulative series, the number of steps whose rows are left out
    # of a step of a cumulative series, what it published of every group, or of all rows
    encoded: tuple[Encoded, ...] = ()

    @cached_property
    def root(self) -> Array | None:
        """See `Whitening.root_of`."""
        return None if self.whitening is None else self.whitening.root_of(self.manifest)

    def in_metric(self, matrix: Array) -> Array:
        """A matrix in the metric in which it was drawn."""
        if self.root is None:
            return matrix
        return congruence(np.asarray(np.linalg.inv(self.root), np.float64), matrix)

    @property
    def drawn(self) -> Array:
        """The matrix as drawn, minus the mean of the noise; shape (p, p)."""
        own = None if self.whitening is None or self.whole else self.whitening.drawn
        return self.in_metric(self.unbiased) if own is None else own

    @property
    def drawn_stem(self) -> str:
        """File stem of the matrix as drawn."""
        return stems(self.manifest)[0] if self.root is None else WHITENED

    @cached_property
    def group_sizes(self) -> list[tuple[float, float]]:
        """The number of rows of every group, and the standard deviation of its noise.

        They are not negative, and add up to the number of all rows if that is public.
        """
        rows = [each.rows for each in self.manifest.groups]
        if self.manifest.rows.status != "public":
            return [(max(each.observed, 0.0), each.sd) for each in rows]
        variance = np.array([each.sd**2 for each in rows])
        weight = 1 / np.maximum(variance, _EXACT)
        observed = np.array([each.observed for each in rows])
        fit = Partition.of(observed, weight, self.manifest.rows.value)
        errors = np.sqrt(np.diag(fit.covariance(weight**2 * variance)))
        return list(zip(fit.value.tolist(), errors.tolist(), strict=True))

    @property
    def marginals(self) -> tuple[Histogram, ...]:
        """The histograms of all columns in their last stage; empty if there are none."""
        return last_stage(self.histograms)

    @cached_property
    def _published_histograms(self) -> tuple[Histogram, ...]:
        return as_published(self.histograms, self.manifest.columns)

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
        facts, law = self.manifest, self.manifest.noise
        terms: tuple[NoiseTerm, ...] = ()
        if self.root is not None:
            law, terms = noise_sum([NoiseTerm(law, self.root)], len(self.raw))
        return Evidence(
            raw=self.unbiased,
            repaired=self.repaired,
            law=law,
            terms=terms,
            rows=facts.rows.value,
            names=tuple(facts.names),
            columns=facts.source_columns,
            unit=facts.normalisation.unit_rows,
            folds=self._folds,
            trace=facts.trace_bound,
            divisor=self._divisor,
            rows_sd=facts.rows.sd,
            radius=facts.radius,
            metric_radius=facts.metric_radius,
            present=self._present_shares,
            histograms=self._published_histograms,
            lost=self._lost_matrix,
            signs=facts.scaling.signs if facts.scaling else (),
            rows_each=facts.dataset.rows / facts.dataset.count,
            persons=facts.privacy_unit == "person",
            size=self.size,
            missing=self._missing_matrix,
            bounds=facts.declared_bounds,
            declared=facts.rows.value if facts.rows.status == "public" else None,
            of_all=self.whole._published_histograms if self.whole else (),
            tails=facts.scaling.tails if facts.scaling else {},
            steps=self.steps,
        )

    @property
    def steps(self) -> SeriesSteps | None:
        """The steps of a cumulative series whose rows these are; None without a series."""
        facts, series = self.manifest.cumulative, self.manifest.series
        if facts is None or series is None:
            return None
        draws = (*(each.sha256 for each in facts.earlier), self.sha256)
        return SeriesSteps(series, draws, self.first_step, facts.step, facts.steps, self.group)

    @property
    def _present_shares(self) -> tuple[float, ...]:
        """Shares of the rows with a value, as far as their own matrix of missing cells tells.

        Counts of missing cells are of all rows. Those of a group differ from them as the diagonals
        of the two matrices do, as far as the noise does not explain it. With the constants of an
        earlier release, the counts are of its table. The diagonal of a matrix that was not cut has
        the shares of this one.
        """
        shares = self.whole._present_shares if self.whole else self.manifest.present_shares
        own, rows, scaling = self._missing_matrix, self.manifest.missing_rows, self.manifest.scaling
        if own is None or rows is None or scaling is None:
            return shares
        holes, present = list(own.columns), np.array(shares)
        absent = 1 - present[holes]
        of_all = self.whole._missing_matrix if self.whole else None
        if of_all is not None:
            expected = np.diag(of_all.together)
        elif scaling.kind == "release" and rows.cut >= len(holes):
            expected = absent
        else:
            return shares
        of_cut = absent / np.maximum(expected, absent / len(holes))
        moved = of_cut * (np.diag(own.together) - expected)
        noise = math.sqrt(2) * of_cut * own.sd
        trust = np.maximum(1 - (noise / np.maximum(np.abs(moved), _EXACT)) ** 2, 0.0)
        present[holes] = np.clip(present[holes] - trust * moved, _LEAST_SHARE, 1.0)
        return tuple(present.tolist())

    @property
    def _lost_matrix(self) -> LostMatrix | None:
        facts, rows = self.manifest.lost, self.manifest.lost_rows
        if facts is None or rows is None:
            return None
        square = rows.unit * rows.unit
        return LostMatrix(
            matrix=square * self.further["lost"],
            sd=square * facts.noise.sd_off_diagonal,
            intercept=facts.intercept,
            cut=rows.cut,
            rows_per_unit=self.manifest.dataset.rows / self.manifest.dataset.count,
        )

    @property
    def _missing_matrix(self) -> MissingMatrix | None:
        facts, rows = self.manifest.missing, self.manifest.missing_rows
        if facts is None or rows is None:
            return None
        matrix, p = self.further["missing"], len(self.raw)
        root = np.eye(p) if self.root is None else self.root
        of_products = (self.manifest.radius or math.nan) / math.sqrt(rows.cut) / rows.indicator
        sd = facts.noise.sd_off_diagonal
        names, sources = facts.columns, self.manifest.source_columns
        places = {column.name: k for k, column in enumerate(sources) if column is not None}
        return MissingMatrix(
            together=matrix[p:, p:],
            products=root @ matrix[:p, p:] * of_products,
            columns=tuple(places[name] for name in names),
            sd=sd,
            products_sd=sd * of_products * float(np.sqrt((root**2).sum(axis=1).mean())),
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
            **self.manifest.further_of_group(own.rows.value),
            "groups": (),
        }
        return replace(
            self,
            manifest=self.manifest.model_copy(update=facts),
            raw=group.raw,
            projected=group.denoised,
            denoised=group.denoised,
            folds=group.folds,
            # Those of columns are of all rows; those of lengths tell how heavy their tails are.
            histograms=tuple(h for h in self.histograms if h.column in ALL_LENGTHS),
            groups=(),
            further=group.further,
            size=self.group_sizes[index],
            whole=self,
            group=group.level,
            encoded=self.encoded[index : index + 1],
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
    """Write a release into a folder that is empty, except for published rows and a step's sums."""
    if groups:
        write_groups(folder, manifest, groups)
    if histograms:
        write_histograms(folder, histograms)
    for (stem, names), matrix in zip(_matrix_columns(manifest).items(), matrices, strict=True):
        write_matrix(folder, stem, matrix, names, compact=_is_compact(stem))
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
    matrices = [
        read_matrix(folder, stem, names, compact=_is_compact(stem), largest=LARGEST)
        for stem, names in _matrix_columns(manifest).items()
    ]
    scaling, whitening = manifest.scaling, None
    if scaling is not None and manifest.states_metric:
        drawn = matrices.pop() if manifest.is_whitened else None
        metric = matrices.pop()
        whitening = Whitening(matrices.pop() if scaling.pilot else None, metric, drawn)
        if not whitening.maps(manifest):
            raise families.CONTENT(
                "{path} is not a metric of these columns.",
                "Fetch the bundle again from its curator.",
                path=str(folder / f"{METRIC}.npy"),
            )
    first_further = len(matrices) - len(manifest.further_facts)
    further = dict(zip(manifest.further_facts, matrices[first_further:], strict=True))
    raw, projected, *rest = matrices[:first_further]
    folds = rest[len(rest) - len(manifest.fold_rows) :]
    denoised = rest[0] if len(rest) > len(folds) else None
    groups = read_groups(folder, manifest)
    return ReleaseBundle(
        manifest,
        raw,
        projected,
        denoised,
        tuple(folds),
        sha256,
        histograms,
        groups,
        further,
        whitening=whitening,
        encoded=read_encoded(folder, manifest),
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
    if manifest.scaling is not None and manifest.has_histograms:
        stages, turned = len(manifest.scaling.stages), manifest.has_metric
        return read_histograms(folder, manifest.columns, stages, turned=turned)
    if not manifest.publication.has_matrix:
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
        of_metric = 3 if spec.states_metric else 0
        size += (4 + of_metric + spec.folds) * (entry * p * p + texts)
        if spec.has_histograms:  # maybe a matrix of missing cells
            size += 4 * (40 * p * p + texts)
    if spec.by is not None:
        of_missing = 4 if spec.has_histograms else 0
        size += spec.groups_count * (1 + of_missing + spec.folds) * 40 * p * p + texts
    if spec.cumulative is not None:
        size += spec.groups_count * 24 * (p * p // 2 + p + 1) + texts
    if spec.scaling is not None:
        size += 64 * most_bins(spec.columns, len(spec.scaling.stages))
    if publication.row_columns is not None:
        columns = publication.row_columns(spec.names)
        size += most_row_bytes(columns, spec.dataset.rows) + 256 * len(columns)
    return size


def stems(manifest: ReleaseManifest) -> list[str]:
    """File stems of the matrices: as released, projected; if any, denoised, folds and further."""
    return [*_matrix_columns(manifest)]


def _matrix_columns(manifest: ReleaseManifest) -> dict[str, list[str]]:
    """Names of the columns of every matrix, by its file stem; see `stems`."""
    stem, names = manifest.publication.stem, manifest.names
    if not stem:
        return {}
    denoised = [f"{stem}_denoised"] if manifest.noise.has_noise else []
    folds = [f"{stem}_fold{k}" for k in range(1, len(manifest.fold_rows) + 1)]
    columns = dict.fromkeys([stem, f"{stem}_projected", *denoised, *folds], names)
    further = manifest.further_facts
    columns |= {FURTHER[name]: manifest.further_names(name) for name in further}
    scaling = manifest.scaling
    if scaling is not None and manifest.states_metric:
        pilot = [PILOT] if scaling.pilot else []
        drawn = [WHITENED] if manifest.is_whitened else []
        columns |= dict.fromkeys([*pilot, METRIC, *drawn], names)
    return columns


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
    rows = manifest.publication.rows_file
    files = [
        file
        for stem, names in _matrix_columns(manifest).items()
        for file in matrix_files(stem, len(names), compact=_is_compact(stem))
    ]
    histograms = [MARGINALS] if manifest.has_histograms else []
    groups = [GROUPS] if manifest.groups else []
    if manifest.groups and manifest.missing is not None:
        groups.append(GROUP_FILES["missing"])
    encoded = [] if manifest.cumulative is None else [ENCODED]
    return [*([rows] if rows else []), *files, *groups, *encoded, *histograms, CARD]


@dataclass(frozen=True)
class EstimateBundle:
    """An estimate as read from disk; its seal is valid, and its formats agree."""

    manifest: EstimateManifest  # its public facts
    matrices: Mapping[str, Array]  # matrices by name, the main one first; shape (p, p)
    tables: Mapping[str, pd.DataFrame]  # tables by name
    # weights of its graph, shape (p, p), zero for missing edges; None if it has no graph
    edges: Array | None
    sha256: str  # digest of SHA256SUMS

    @property
    def group(self) -> str | None:
        """Name of the group of rows that it was computed from; None for all rows."""
        group = self.manifest.estimator.get("group")
        return None if group is None else str(group)

    def graph(self) -> Any:
        """Its graph as a `networkx.Graph`, maybe without edges."""
        p = len(self.manifest.names)
        return as_graph(np.zeros((p, p)) if self.edges is None else self.edges, self.manifest)


def write_estimate(
    folder: Path,
    manifest: EstimateManifest,
    matrices: Mapping[str, Array],
    tables: Mapping[str, pd.DataFrame],
    edges: Array | None,
) -> None:
    """Fill an empty folder with an estimate."""
    for stem, matrix in matrices.items():
        write_matrix(folder, stem, matrix, manifest.names)
    for stem, table in tables.items():
        write_table(folder, stem, table)
    if edges is not None:
        write_graph(folder, edges, manifest)
    write_descriptor(folder, estimate_descriptor(folder, manifest))


def estimate_descriptor(folder: Path, manifest: EstimateManifest) -> dict[str, Any]:
    """The content of datapackage.json for an estimate."""
    name = f"{manifest.dataset.id}-{manifest.release}-{manifest.estimate}"
    title = f"{manifest.dataset.title}: {manifest.estimator['name']}"
    files = [f for stem in manifest.matrices for f in matrix_files(stem, len(manifest.names))]
    files += [f"{stem}.{suffix}" for stem in manifest.tables for suffix in ("parquet", "csv")]
    files += graph_files(folder) if manifest.graph else []
    return descriptor(folder, name, title, files, manifest)


def read_estimate(folder: Path) -> EstimateBundle:
    """Read an estimate, verified."""
    sha256 = check(folder)
    manifest = read_manifest(folder, EstimateManifest)
    matrices = {stem: read_matrix(folder, stem, manifest.names) for stem in manifest.matrices}
    tables = {stem: read_table(folder, stem, len(manifest.names)) for stem in manifest.tables}
    edges = read_graph(folder, manifest.names) if manifest.graph else None
    return EstimateBundle(manifest, matrices, tables, edges, sha256)


GRAPH = "graph.graphml"
MOST_EDGES = 50_000  # of a graph as CSV and GraphML
_PARQUET, _CSV = f"{EDGES}.parquet", f"{EDGES}.csv"
_SCHEMA = pa.schema([("row", pa.string()), ("col", pa.string()), ("weight", pa.float64())])
# Limits on what is read of a hostile archive's GraphML.
_FILE_BYTES, _NODE_BYTES, _EDGE_BYTES, _CHARACTER_BYTES = 32 << 20, 256, 256, 8


def graph_files(folder: Path) -> list[str]:
    """The files of the graph in a folder."""
    return [name for name in (_PARQUET, _CSV, GRAPH) if (folder / name).exists()]


def write_graph(folder: Path, edges: Array, manifest: EstimateManifest) -> None:
    """Write a graph: as Parquet, and up to `MOST_EDGES` edges as CSV and GraphML.

    Parameters
    ----------
    edges
        Weights, shape (p, p), symmetric; zero for missing edges.
    """
    i, j = np.nonzero(np.triu(edges, 1))
    words = pa.array(manifest.names, pa.string())
    rows, cols = (pa.DictionaryArray.from_arrays(pa.array(k, pa.int32()), words) for k in (i, j))
    table = pa.table({"row": rows, "col": cols, "weight": pa.array(edges[i, j])})
    if i.size > MOST_EDGES:
        pq.write_table(table, folder / _PARQUET, store_schema=False, compression="zstd")
        return
    write_table(folder, EDGES, table.cast(_SCHEMA).to_pandas())
    import networkx as nx

    text = "\n".join(nx.generate_graphml(as_graph(edges, manifest))) + "\n"
    (folder / GRAPH).write_text(text, encoding="utf-8", newline="\n")


def read_graph(folder: Path, names: Sequence[str]) -> Array:
    """The weights of the edges, shape (p, p), which all files must contain."""
    edges = _read_edges(folder / _PARQUET, names)
    # Other files may exist for any number of edges, and must then agree.
    if np.count_nonzero(edges) > 2 * MOST_EDGES and graph_files(folder) == [_PARQUET]:
        return edges
    read_table(folder, EDGES, len(names))
    if not _same_graphml(folder / GRAPH, edges, names):
        raise wordings.formats_differ(str(folder / GRAPH), _PARQUET)
    return edges


def as_graph(edges: Array, manifest: EstimateManifest) -> Any:
    """The graph as a `networkx.Graph`, with the release that it comes from as attributes."""
    from gramercy.common.graphs import weighted_graph  # imports networkx: a third of a second

    return weighted_graph(
        manifest.names,
        edges,
        release=f"{manifest.dataset.id}/{manifest.release}",
        estimate=manifest.estimate,
        privacy=manifest.privacy,
    )


def _read_edges(path: Path, names: Sequence[str]) -> Array:
    p, valid = len(names), False
    edges = np.zeros((p, p))
    try:
        table = read_bounded(path, p * (p - 1) // 2)
        i, j = codes_of(table["row"], names), codes_of(table["col"], names)
        edges[i, j] = table["weight"].to_numpy()
        found = np.nonzero(np.triu(edges, 1))
        valid = bool(np.isfinite(edges).all()) and table.column_names == [*_SCHEMA.names]
        valid &= np.array_equal(found, (i, j))
    except Exception:  # a file that was tampered with may make Arrow raise anything
        valid = False
    if not valid:
        raise wordings.not_a_table(str(path))
    return edges + edges.T


def _same_graphml(path: Path, edges: Array, names: Sequence[str]) -> bool:
    import networkx as nx

    from gramercy.common.graphs import has_own_names  # imports networkx

    try:
        # Refused before it is parsed: a file that is too large, or that defines XML entities.
        longest = _CHARACTER_BYTES * max(map(len, names))
        # Each name is an id and two attributes.
        nodes = len(names) * _NODE_BYTES + 3 * _CHARACTER_BYTES * sum(map(len, names))
        of_edges = int(np.count_nonzero(edges)) * (_EDGE_BYTES + 2 * longest)
        if path.stat().st_size > _FILE_BYTES + nodes + of_edges:
            raise ValueError
        text = path.read_text(encoding="utf-8")
        if "<!" in text:
            raise ValueError
        graph = nx.parse_graphml(text)
        weights = nx.to_numpy_array(graph, list(names), weight="weight")
        return has_own_names(graph) and set(graph) == set(names) and np.array_equal(weights, edges)
    except Exception:  # a file that was tampered with may make a parser raise anything
        raise families.CONTENT(
            "{path} is not a graph of these columns.",
            "Fetch the bundle again from its curator.",
            path=str(path),
        ) from None


# Limits on what is read from a hostile archive.
_CSV_BYTES, _ENTRY_BYTES = 32 << 20, 128
_EXPANSION = 8  # a number needs 8 bytes, and in CSV at least one


def write_table(folder: Path, stem: str, table: pd.DataFrame) -> None:
    arrow_table = pa.Table.from_pandas(table, preserve_index=False)
    pq.write_table(arrow_table, folder / f"{stem}.parquet", store_schema=False, compression="zstd")
    (folder / f"{stem}.csv").write_bytes(csv_bytes(_without_formulas(table)))


def csv_bytes(table: pd.DataFrame) -> bytes:
    """The table as CSV; with 17 digits, every double is read back exactly."""
    text: str = table.to_csv(index=False, float_format="%.17g", lineterminator="\n")
    return text.encode()


def _without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """The table with an apostrophe before names that a spreadsheet program could execute."""
    safe = table.rename(columns=lambda name: not_a_formula(str(name)))
    for k in range(table.shape[1]):
        cells = table.iloc[:, k]
        if not pd.api.types.is_numeric_dtype(cells):
            safe.isetitem(k, [not_a_formula(x) if isinstance(x, str) else x for x in cells])
    return safe


def read_table(folder: Path, stem: str, columns: int) -> pd.DataFrame:
    """A table of an estimate from a release with this many columns."""
    path, same = folder / f"{stem}.parquet", False
    try:
        size = (folder / f"{stem}.csv").stat().st_size
        if size > _CSV_BYTES + _ENTRY_BYTES * columns * columns:
            raise ValueError
        stated = (folder / f"{stem}.csv").read_bytes()
        # A line of CSV is a row, unless a text contains line breaks.
        table = _read_parquet(path, stated.count(b"\n"), len(stated))
        same = stated == csv_bytes(_without_formulas(table))
    except Exception:  # a file that was tampered with may make a parser raise anything
        raise wordings.not_a_table(str(path)) from None
    if not same:
        raise wordings.formats_differ(f"{folder / stem}.csv", path.name)
    return table


def _read_parquet(path: Path, most_rows: int, csv_bytes: int) -> pd.DataFrame:
    """The table in a Parquet file, which also exists as CSV with this number of bytes."""
    table = read_bounded(path, most_rows, bounded_bytes(0) + _EXPANSION * csv_bytes)
    for k, cells in enumerate(table.columns):
        if pa.types.is_nested(cells.type):
            raise ValueError
        if pa.types.is_dictionary(cells.type):
            for chunk in cells.chunks:  # its texts must not need more bytes, decoded, than the CSV
                lengths = pc.fill_null(pc.binary_length(chunk.dictionary), 0).to_numpy(False)
                codes = chunk.indices.drop_null().to_numpy(False)
                if len(codes) and lengths.astype(np.int64)[codes].sum() > csv_bytes:
                    raise ValueError
            table = table.set_column(k, table.column_names[k], cells.cast(pa.string()))
    frame: pd.DataFrame = table.to_pandas()
    return frame


PAGE = "report.html"

_TAG_START = re.compile(r"<[a-zA-Z]")
_TAG = re.compile(r"""<([a-zA-Z][^\s/<>"']*)((?:[^<>"']|"[^"]*"|'[^']*')*+)>""")
_ATTRIBUTE = re.compile(r"""([^\s"'=/<>]+)\s*=\s*("[^"]*"|'[^']*'|[^\s"'<>]+)""")
_ACTIVE = re.compile(
    "animate|applet|base|embed|foreignobject|form|frame|frameset|iframe|input|object|script|set"
)
_REFERENCES = frozenset({"action", "formaction", "href", "poster", "src", "srcdoc", "xlink:href"})
_POLICY = "content-security-policy"
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*):|//")
_LINK, _INLINE = re.compile(r"https?:|mailto:"), re.compile(r"data:(,|image/)")
_IGNORED = re.compile(r"[\x00-\x20]")  # browsers ignore them in an address


def is_active(page: str) -> bool:
    """Whether an HTML page, or SVG in it, may run a script, or load or send something."""
    for start in _TAG_START.finditer(page):
        tag = _TAG.match(page, start.start())
        if tag is None or _ACTIVE.fullmatch(tag[1].lower()):
            return True
        for attribute in _ATTRIBUTE.finditer(tag[2]):
            if _is_active_attribute(tag[1].lower(), attribute[1].lower(), attribute[2]):
                return True
    return False


def _is_active_attribute(tag: str, name: str, value: str) -> bool:
    text = _IGNORED.sub("", html.unescape(value.strip("\"'"))).lower()
    if name == "http-equiv":
        return text != _POLICY
    if name not in _REFERENCES:
        return name.startswith("on")
    allowed = _LINK if tag == "a" else _INLINE
    return _SCHEME.match(text) is not None and allowed.match(text) is None


@dataclass(frozen=True)
class ReportBundle:
    """A report as read from disk; `page` is HTML."""

    manifest: ReportManifest
    page: str
    sha256: str


def report_descriptor(folder: Path, manifest: ReportManifest) -> dict[str, Any]:
    """The content of datapackage.json for a report."""
    name = f"{manifest.dataset.id}-{manifest.release}-{manifest.report}"
    return descriptor(folder, name, f"{manifest.dataset.title}: report", [PAGE], manifest)


def read_report(folder: Path) -> ReportBundle:
    """Read a report, verified; raises as `read_release` does."""
    sha256 = check(folder)
    manifest = read_manifest(folder, ReportManifest)
    try:
        page = (folder / PAGE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as caught:
        raise wordings.file_unreadable(str(folder / PAGE), error_reason(caught)) from None
    if is_active(page):
        raise families.DESCRIPTION(
            "{path} contains a script, a form or a frame.",
            "Do not open it.",
            path=str(folder / PAGE),
        )
    return ReportBundle(manifest, page, sha256)


_THREADS = 8


@dataclass(frozen=True)
class DescribedRelease:
    """The description of a release, verified."""

    manifest: ReleaseManifest  # its manifest
    sha256: str  # digest of its SHA256SUMS
    withdrawal: WithdrawalBundle | None  # its notice of withdrawal; None if it was not withdrawn

    @property
    def name(self) -> str:
        """DATASET/RELEASE."""
        return f"{self.manifest.dataset.id}/{self.manifest.release}"

    @property
    def withdrawn(self) -> str | None:
        """The reason of its withdrawal; None if it was not withdrawn."""
        return self.withdrawal.manifest.reason if self.withdrawal else None


def describe_release(archive: Archive, dataset: str, release: str) -> DescribedRelease:
    """The description of a release, verified; its matrices are not read."""
    place = archive.metadata_path(dataset, release)
    name = f"{dataset}/{release}"
    if place is None:
        names = ["/".join(each) for each in archive.releases()]
        raise wordings.unknown_release(archive.location, name, most_similar_first(name, names))
    with archive.rewrite_paths_in_errors():
        manifest = read_release_manifest(place)
        archive.verify_signer(place)
        if (manifest.dataset.id, manifest.release) != (dataset, release):
            raise wordings.wrong_release(str(place / DESCRIPTOR), name)
        sha256 = file_digest(place / SUMS)
        notice = archive.withdrawal(dataset, release)
        if not archive.contains(notice):
            return DescribedRelease(manifest, sha256, None)
        archive.verify_signer(notice)
        withdrawal = read_withdrawal(notice)
        if withdrawal.manifest.release_sha256 != sha256:
            raise wordings.wrong_release(str(notice / DESCRIPTOR), name)
        return DescribedRelease(manifest, sha256, withdrawal)


def try_describe(
    archive: Archive, names: Iterable[tuple[str, str]]
) -> Iterator[DescribedRelease | GramercyError]:
    """For each of these releases, its description or the error that reading it raised."""

    def attempt(name: tuple[str, str]) -> DescribedRelease | GramercyError:
        try:
            return describe_release(archive, *name)
        except GramercyError as error:
            return error

    with ThreadPoolExecutor(_THREADS) as readers:  # at a URL, most of the time is waiting
        yield from readers.map(attempt, names)


NOTICE = "NOTICE.md"


@dataclass(frozen=True)
class WithdrawalBundle:
    """A notice as read from disk; its seal is valid, and its text follows from its manifest."""

    manifest: WithdrawalManifest
    sha256: str


def write_withdrawal(folder: Path, manifest: WithdrawalManifest) -> None:
    """Fill an empty folder with a notice."""
    (folder / NOTICE).write_text(notice_text(manifest), encoding="utf-8", newline="\n")
    write_descriptor(folder, withdrawal_descriptor(folder, manifest))


def withdrawal_descriptor(folder: Path, manifest: WithdrawalManifest) -> dict[str, Any]:
    """The content of datapackage.json for a notice."""
    name = f"{manifest.dataset.id}-{manifest.release}-withdrawn"
    return descriptor(folder, name, f"{manifest.dataset.title}: withdrawn", [NOTICE], manifest)


def read_withdrawal(folder: Path) -> WithdrawalBundle:
    """Read a notice, verified."""
    sha256 = check(folder)
    manifest = read_manifest(folder, WithdrawalManifest)
    try:
        text = (folder / NOTICE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        text = ""
    same_text = text == notice_text(manifest)
    if not same_text or read_descriptor(folder) != withdrawal_descriptor(folder, manifest):
        raise families.DESCRIPTION(
            "{path} contradicts its manifest.",
            "Fetch the bundle again from its curator.",
            path=str(folder / (DESCRIPTOR if same_text else NOTICE)),
        )
    return WithdrawalBundle(manifest, sha256)


def notice_text(manifest: WithdrawalManifest) -> str:
    """The text of NOTICE.md; fixed, because reading a notice compares it with this text."""
    facts = manifest.dataset
    return "\n".join(
        [
            f"# Withdrawn: {markdown_text(facts.title)}, version {facts.version}",
            "",
            f"{markdown_text(facts.curator)} has withdrawn the release "
            f"`{facts.id}/{manifest.release}` on {manifest.date}. "
            "Please use it no longer, nor what was estimated from it.",
            "",
            f"> {markdown_text(manifest.reason)}",
            "",
            "The release stays where it is, so that work that used it can be checked. The privacy "
            "budget that it cost stays spent: what was published cannot be taken back.",
            "",
            "The SHA256SUMS of the release has the SHA-256",
            "",
            f"    {manifest.release_sha256}",
            "",
        ]
    )
