"""How each kind of publication is drawn, written, stated in its manifest, and checked.

Noise is drawn here, once, for a release that has been charged. The manifest is computed from public
facts alone, both to write and to verify a release.
"""

from __future__ import annotations

import datetime
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import (
    FURTHER,
    ReleaseBundle,
    Whitening,
    published_columns,
    read_release,
    software_versions,
    write_release,
)
from gramercy.archive.bundles.card import dp_card
from gramercy.archive.bundles.encoded_file import Encoded, decode, write_encoded
from gramercy.archive.bundles.number_files import (
    GROUP_FILES,
    GROUPS,
    GroupMatrices,
    RowWriter,
    read_rows,
    rows_per_batch,
)
from gramercy.archive.seal.bundle import file_digest
from gramercy.common.metric import Metric, congruence
from gramercy.common.prefix_sums import PrefixSums
from gramercy.estimators.marginals import counted_rows
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.estimators.solvers.certified import solve_within
from gramercy.mechanisms.gaussian import Gaussian
from gramercy.mechanisms.histograms import HistogramNoise
from gramercy.mechanisms.local import Local
from gramercy.mechanisms.marginals import Marginals
from gramercy.mechanisms.mechanism import Additive, Mechanism, RowWise
from gramercy.mechanisms.output_perturbation import Output
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.calibration import (
    calibrate,
    guarantee_facts,
    row_normalisation,
    turning_of,
)
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.progress import rows_bar
from gramercy.pipeline.publish.private_table import (
    PrivateCounts,
    PrivateSums,
    count_cells,
    count_lengths,
    sum_for_pilot,
    sum_further_rows,
    sum_rows,
)
from gramercy.scaling.chain import ConstantsChain, lengths_of, longest_row
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Histogram, last_stage
from gramercy.schemas.facts import (
    CalibrationFacts,
    GroupFacts,
    LatticeFacts,
    LevelsFacts,
    LostFacts,
    MissingFacts,
    RowsFacts,
    group_names,
)
from gramercy.schemas.manifest import FORMAT, ReleaseManifest, ReleaseSpec
from gramercy.schemas.model import digest
from gramercy.schemas.publications import (
    MARGINALS,
    PRECISION,
    REPORTS,
    ROWS,
    SECOND_MOMENT,
    Publication,
)
from gramercy.tables.batches import MalformedLines, blocks
from gramercy.tables.formats.source import open_source, verify_unchanged
from gramercy.tables.sums.exact_sums import Sum
from gramercy.tables.sums.row_transform import Repairs
from gramercy.tables.sums.streaming import Accumulated, integer_batches

Array = NDArray[np.float64]
M = TypeVar("M", bound=Mechanism)


@dataclass(frozen=True)
class ReportSum:
    """The sum of noisy reports."""

    total: NDArray[np.float64]  # the sum of all reports; shape (p, p)
    rows: int  # number of reports
    sources: dict[str, str]  # the releases with the reports, and the checksums of their SHA256SUMS

    @property
    def fingerprint(self) -> str:
        """Digest of the sources."""
        return digest(self.sources)


PrivateData = PrivateSums | PrivateCounts | ReportSum

MATRIX = "second_moment.npy"
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Draft:
    """A release that has been charged, and is being drawn and written."""

    folder: Path
    plan: Plan
    release: str
    histograms: Sequence[Histogram] = ()
    whitening: Whitening | None = None

    def manifest(
        self,
        row_counts: Sequence[float] = (),
        group_counts: Sequence[Sequence[float]] = (),
        sources: Mapping[str, str] | None = None,
    ) -> ReleaseManifest:
        """The manifest of the release, published today; see `release_manifest`."""
        return release_manifest(
            self.plan.spec,
            release=self.release,
            published=datetime.datetime.now(datetime.UTC).date().isoformat(),
            row_counts=row_counts,
            group_counts=group_counts,
            versions=software_versions(),
            sources=sources,
            histograms=self.histograms,
        )


class Publisher(ABC, Generic[M]):
    """How the releases of one kind are drawn and written, and how their noise is checked.

    Its methods take the planned or the published release, and its mechanism of type M.
    """

    publication: ClassVar[Publication]

    def draw(self, folder: Path, plan: Plan, data: Any, release: str) -> PrivateData:
        """See `draw_into`."""
        whitening = None if plan.metric is None else Whitening(None, plan.metric.matrix)
        draft = Draft(folder, plan, release, whitening=whitening)
        if isinstance(data, PrivateCounts):
            with closing(data.kept):
                plan, histograms, whitening = draw_counts(plan, data)
                draft = Draft(folder, plan, release, histograms, whitening)
                data = self._next_pass(plan, data)
        self._publish(draft, plan.mechanism, data)  # type: ignore[arg-type]
        drawn: PrivateData = data
        return drawn

    def _next_pass(self, plan: Plan, data: PrivateCounts) -> PrivateSums | PrivateCounts:
        """What is drawn after the constants were estimated: from sums of the rows."""
        return PrivateSums(
            sum_rows(plan, data.state, data.kept),
            data.fingerprint,
            data.state,
            sum_further_rows(plan, data.state, data.kept),
        )

    @abstractmethod
    def _publish(self, draft: Draft, mechanism: M, data: Any) -> None:
        """Draw the noise and write the release."""

    def rows(
        self, spec: ReleaseSpec, folds: Sequence[RowsFacts], _: Sequence[Histogram]
    ) -> RowsFacts:
        """The number of rows of the release, from those of its folds and its histograms."""
        return total_rows(folds)

    def check_noise(self, place: Path, bundle: ReleaseBundle, mechanism: M) -> None:
        """Check that the published numbers can be what the mechanism draws."""
        path = place / f"{bundle.drawn_stem}.npy"
        _check_size(path, bundle)
        self._check_lattice(path, bundle, mechanism)

    def _check_lattice(self, path: Path, bundle: ReleaseBundle, mechanism: M) -> None:
        """Check that the matrix at a path is on the lattice of the noise, if it has one."""


class SecondMomentPublisher(Publisher[Additive]):
    """A second moment with noise on the Gram matrix, maybe of folds and of groups of rows."""

    publication = SECOND_MOMENT

    def _publish(self, draft: Draft, mechanism: Additive, data: PrivateSums) -> None:
        drawn = self._draw(draft.plan, mechanism, data.sums)
        sums, further = drawn.sums, draw_further(draft.plan, data.further)
        manifest = draft.manifest(drawn.fold_rows.tolist(), drawn.part_rows.tolist())
        if drawn.encoded:
            write_encoded(draft.folder, manifest, drawn.encoded)
        of_folds = zip(sums.sum(axis=0), manifest.fold_rows, strict=False)
        groups = []
        for k, (facts, of_group) in enumerate(zip(manifest.groups, sums, strict=False)):
            raw = of_group.sum(axis=0) / facts.rows.value
            folds = [x / rows.value for x, rows in zip(of_group, facts.fold_rows, strict=False)]
            denoised = denoised_group(manifest, facts.rows.value, raw)
            own = {name: x[k] / facts.rows.value for name, x in further.items()}
            raw, denoised, *folds = (
                scaled(manifest, draft.whitening, x) for x in (raw, denoised, *folds)
            )
            groups.append(GroupMatrices(facts.level, raw, denoised, tuple(folds), own))
        write_matrices(
            draft.folder,
            manifest,
            sums.sum(axis=(0, 1)) / manifest.rows.value,
            [matrix / rows.value for matrix, rows in of_folds],
            draft.histograms,
            groups,
            [x.sum(axis=0) / manifest.rows.value for x in further.values()],
            draft.whitening,
        )

    def _draw(self, plan: Plan, mechanism: Additive, sums: Accumulated) -> DrawnSums:
        return draw_noise(plan.spec, mechanism, sums)

    def check_noise(self, place: Path, bundle: ReleaseBundle, mechanism: Additive) -> None:
        """See `Publisher.check_noise`: also of the further matrices."""
        super().check_noise(place, bundle, mechanism)
        _check_further(place, bundle)

    def _check_lattice(self, path: Path, bundle: ReleaseBundle, mechanism: Additive) -> None:
        facts, divisor = bundle.manifest, mechanism.lattice.divisor
        drawn = bundle.drawn + facts.noise.mean * np.eye(len(bundle.raw))
        check_lattice(path, drawn * facts.rows.value * divisor)
        if bundle.root is not None:  # parts are published in scaled units, with rounding errors
            return
        for moment, part in zip(bundle.folds, facts.fold_rows, strict=True):
            check_lattice(path, moment * part.value * divisor)
        for moment, part in group_parts(bundle):
            check_lattice(path.parent / GROUPS, moment * part.value * divisor)


class SeriesPublisher(SecondMomentPublisher):
    """A step of a cumulative series: a weighted sum, and the sum so far that it is decoded to."""

    def _draw(self, plan: Plan, mechanism: Additive, sums: Accumulated) -> DrawnSums:
        spec, series, steps = plan.spec, mechanism.parameters.series, plan.spec.slices
        if series is None or len(sums.part_sums) != steps * spec.groups_count:
            raise wordings.sums_not_as_planned()
        groups = [sums.part_sums[k : k + steps] for k in range(0, len(sums.part_sums), steps)]
        own = tuple(encode(mechanism, series, group) for group in groups)
        matrices, rows = decode(series, mechanism.lattice.divisor, [*plan.earlier, own])
        is_public = spec.neighbours.count_is_public
        so_far = _numbers([sums.rows]) if is_public else rows.sum(keepdims=True)
        return DrawnSums(matrices[:, None], rows[:, None], so_far, own)

    def _check_lattice(self, path: Path, bundle: ReleaseBundle, mechanism: Additive) -> None:
        """The decoded sum is on no lattice; what was drawn are whole numbers."""


def encode(mechanism: Additive, series: PrefixSums, steps: Sequence[Sum]) -> Encoded:
    """Draw the noise of a step once, and add it to the weighted sum over the steps so far."""
    gram = series.encode([require_gram(step.gram) for step in steps])
    noisy = mechanism.perturb(gram, int(series.encode([np.array(step.rows) for step in steps])))
    return Encoded(noisy.gram, noisy.rows)


class RowsPublisher(Publisher[RowWise]):
    """A file with a line for every row of the table, and the second moment that follows from it."""

    publication = ROWS

    def offset(self, spec: ReleaseSpec) -> Array:
        """What is added to published rows after the noise: centres or zero, shape (p, 1)."""
        offset = [0.0] if spec.intercept else []
        for column in spec.columns:
            if isinstance(column, LevelsFacts):
                offset += [0.0] * len(column.levels)
            else:
                offset.append(column.centre if spec.normalisation.keeps_rows else 0.0)
        return np.array(offset)[:, None]

    def _publish(self, draft: Draft, mechanism: RowWise, data: PrivateSums) -> None:
        """Read the table again, and publish its rows with noise and their noisy Gram matrix."""
        plan, manifest = draft.plan, draft.manifest()
        verify_unchanged(data.state, plan.contract.source)
        rows = data.sums.rows
        contract = plan.scaled_contract
        repairs, malformed = Repairs.zeros(len(contract.columns)), MalformedLines()
        batches = integer_batches(
            open_source(contract.source),
            contract,
            row_normalisation(plan.spec),
            mechanism.lattice,
            repairs,
            malformed,
            keep_malformed=True,
        )
        file = draft.folder / str(self.publication.rows_file)
        columns, offset = published_columns(manifest), self.offset(plan.spec)
        with rows_bar("drawing", plan.contract.rows) as on_rows, RowWriter(file, columns) as writer:
            for q in blocks(batches, rows_per_batch(columns)):
                drawn = mechanism.randomize(q.astype(np.int64)) * np.float64(mechanism.step)
                writer.write(drawn + offset)
                on_rows(q.shape[1])
        verify_unchanged(data.state, plan.contract.source)
        if writer.rows != rows:
            raise wordings.table_changed()
        # Computed from the published rows alone, so that it is post-processing.
        gram: Any = sum(mechanism.gram(x - offset) for x in read_rows(file, columns, rows))
        write_matrices(draft.folder, manifest, gram / manifest.rows.value)

    def check_noise(self, place: Path, bundle: ReleaseBundle, mechanism: RowWise) -> None:
        """See `Publisher.check_noise`: also that the matrix follows from the published rows."""
        facts = bundle.manifest
        path = place / str(self.publication.rows_file)
        gram, offset = np.zeros_like(bundle.raw), self.offset(facts)
        for batch in read_rows(path, published_columns(facts), facts.dataset.rows):
            check_lattice(path, batch / mechanism.step)
            gram += mechanism.gram(batch - offset)
        if not arrays_close(gram / facts.rows.value, bundle.raw):
            raise wordings.file_contradicts(str(place / MATRIX), path.name)


class ReportsPublisher(RowsPublisher):
    """A noisy report of every row, and their average."""

    publication = REPORTS

    def offset(self, spec: ReleaseSpec) -> Array:
        """See `RowsPublisher.offset`: nothing."""
        return np.zeros(1)


class AveragePublisher(Publisher[Local]):
    """The average of the reports of other releases; they are noisy, so no noise is drawn."""

    publication = SECOND_MOMENT

    def draw(self, folder: Path, plan: Plan, data: ReportSum, release: str) -> PrivateData:
        """See `draw_into`."""
        manifest = Draft(folder, plan, release).manifest(sources=data.sources)
        write_matrices(folder, manifest, data.total / manifest.rows.value)
        return data

    def _publish(self, *_: Any) -> None:
        """Nothing is drawn."""

    def _check_lattice(self, path: Path, bundle: ReleaseBundle, mechanism: Local) -> None:
        check_lattice(path, bundle.raw * bundle.manifest.rows.value / mechanism.step)


class PrecisionPublisher(Publisher[Output]):
    """A graphical lasso solution with noise."""

    publication = PRECISION

    def _publish(self, draft: Draft, mechanism: Output, data: PrivateSums) -> None:
        gram, lattice = require_gram(data.sums.gram), mechanism.lattice
        truth = gram / (lattice.squared_radius * draft.plan.contract.count)
        noisy = mechanism.perturb(solve_within(truth, mechanism.penalty, mechanism.tolerance))
        write_matrices(draft.folder, draft.manifest(), noisy)

    def _check_lattice(self, path: Path, bundle: ReleaseBundle, mechanism: Output) -> None:
        check_lattice(path, bundle.raw / mechanism.step)


class MarginalsPublisher(Publisher[Marginals]):
    """Histograms of all columns, and no matrix."""

    publication = MARGINALS

    def _next_pass(self, plan: Plan, data: PrivateCounts) -> PrivateCounts:
        """Nothing is drawn after the histograms."""
        return data

    def _publish(self, draft: Draft, mechanism: Marginals, data: PrivateCounts) -> None:
        write_release(draft.folder, draft.manifest(), [], draft.histograms)

    def rows(
        self, spec: ReleaseSpec, folds: Sequence[RowsFacts], histograms: Sequence[Histogram]
    ) -> RowsFacts:
        """See `Publisher.rows`: a private number follows from the published counts."""
        public = spec.neighbours.count_is_public
        return total_rows(folds) if public else counted_rows(last_stage(histograms))

    def check_noise(self, place: Path, bundle: ReleaseBundle, mechanism: Marginals) -> None:
        """See `Publisher.check_noise`: counts are checked when they are read."""


publishers: dict[str, Publisher[Any]] = {
    each.publication.name: each
    for each in (
        SecondMomentPublisher(),
        RowsPublisher(),
        ReportsPublisher(),
        PrecisionPublisher(),
        MarginalsPublisher(),
    )
}
_AVERAGE = AveragePublisher()
_SERIES = SeriesPublisher()


def publisher_of(mechanism: Mechanism, *, averaging: bool) -> Publisher[Any]:
    """How a mechanism is published; or, if it makes reports, the average of them.

    A step of a cumulative series publishes a weighted sum.
    """
    if averaging and mechanism.publishes is REPORTS:
        return _AVERAGE
    if mechanism.parameters.series is not None:
        return _SERIES
    return publishers[mechanism.publishes.name]


def draw_into(folder: Path, plan: Plan, data: PrivateData, release: str) -> PrivateData:
    """Draw the noise of a release that has been charged, and write it into an empty folder.

    Parameters
    ----------
    data
        The exact Gram matrix and number of rows, or exact counts for histograms: private, only
        noisy forms of them are written. Or a sum of reports, which are noisy already.
    """
    return publisher_of(plan.mechanism, averaging=plan.averaging).draw(folder, plan, data, release)


def draw_counts(plan: Plan, data: PrivateCounts) -> tuple[Plan, list[Histogram], Whitening | None]:
    """Draw the noise of all that a charged release publishes before its matrix.

    Returns
    -------
    plan
        With the constants that they give, if they are not those of another release, and the metric.
    published
        What to publish: the histograms of all columns for each stage, and those of row lengths.
    Whitening or None
        The pilot matrix and its metric, if there is a pilot.
    """
    noise = plan.calibration.constants_noise
    if noise is None:
        raise wordings.sums_not_as_planned()
    of_sum = plan.calibration.noise_of_sum(plan.spec)
    chain, published = ConstantsChain.start(plan.spec, of_sum), list[Histogram]()
    counts = data.counts
    for stage, law in enumerate(noise.stages):
        if stage > 0:
            counts = count_cells(plan, chain.grids, data.state, data.kept)
        noisy = law.perturb(counts.counts)
        published += chain.histograms(noisy, law.sd)
        chain = chain.after(noisy, law.sd)
    if noise.stages:
        scaled_rows, edges = replace(plan, spec=chain.scaled), lengths_of(chain.scaled)
        counts = count_lengths(scaled_rows, edges, data.state, data.kept)
    (noisy_lengths,) = noise.lengths.perturb(counts.counts)
    published.append(chain.length_histogram(noisy_lengths, noise.lengths.sd))
    of_lost_sum = plan.calibration.noise_of_lost_sum(plan.spec)
    spec = chain.clipped(published[-1], of_sum, of_lost_sum)
    # The counts decide whether there is a matrix of missing cells.
    plan = replace(plan, spec=spec, calibration=calibrate(spec))
    if noise.turned is None:
        return plan, published, None
    plan, turned, whitening = _whiten(plan, noise.turned, chain, published[-1], data)
    return plan, [*published, turned], whitening


def _whiten(
    plan: Plan,
    law: HistogramNoise,
    chain: ConstantsChain,
    lengths: Histogram,
    data: PrivateCounts,
) -> tuple[Plan, Histogram, Whitening]:
    """Draw the pilot matrix and the row lengths in its metric, and choose the metric in use.

    With the metric of another release, there is no pilot matrix to draw.
    """
    spec, pilot, near = plan.spec, None, None
    mechanism = plan.calibration.pilot
    if mechanism is not None:
        pilot = _draw_pilot(plan, mechanism, data)
        turning = turning_of(mechanism, pilot, chain, lengths, spec)
        metric = Metric.near(turning.metric)
    elif plan.released is not None:
        turning = chain.turning_again(lengths, spec, plan.released.pilot)
        metric, near = plan.released.metric, plan.released.radius
    else:
        raise wordings.sums_not_as_planned()
    turned = replace(plan, metric=metric)
    edges = turning.edges(metric.matrix, longest_row(spec))
    (counts,) = law.perturb(count_lengths(turned, edges, data.state, data.kept).counts)
    histogram = chain.turned_histogram(edges, counts, law.sd)
    of_sum = plan.calibration.noise_of_sum(spec)
    spec = chain.whitened(spec, turning, histogram, metric.matrix, of_sum, near)
    whitening = Whitening(pilot, metric.matrix)
    plan = replace(turned if spec.is_whitened else plan, spec=spec, calibration=calibrate(spec))
    return plan, histogram, whitening


def _draw_pilot(plan: Plan, mechanism: Gaussian, data: PrivateCounts) -> Array:
    """The pilot matrix: the noisy sum over all rows; see `Whitening`."""
    exact = sum_for_pilot(plan, mechanism.lattice, data.state, data.kept)
    noisy = mechanism.perturb(require_gram(exact.gram), exact.rows).gram.astype(np.float64)
    total: Array = noisy / mechanism.lattice.divisor
    return total


@dataclass(frozen=True)
class DrawnSums:
    """Noisy sums over the rows of every part."""

    sums: Array  # of x x^T, shape (groups, folds, p, p)
    part_rows: Array  # noisy numbers of rows, shape (groups, folds), or public sizes of folds
    # numbers of rows of all groups, shape (folds,): public sizes, or sums of noisy numbers
    fold_rows: Array
    encoded: tuple[Encoded, ...] = ()  # of a series, what the step publishes of every group


def draw_noise(spec: ReleaseSpec, mechanism: Additive, sums: Accumulated) -> DrawnSums:
    """Draw independent noise for every part, once."""
    if len(sums.part_sums) != spec.parts:
        raise wordings.sums_not_as_planned()
    drawn = [mechanism.perturb(require_gram(part.gram), part.rows) for part in sums.part_sums]
    matrices = [each.gram.astype(np.float64) / mechanism.lattice.divisor for each in drawn]
    parts = (spec.groups_count, spec.folds)
    exact = _numbers([part.rows for part in sums.part_sums]).reshape(parts)
    noisy = exact
    if not spec.neighbours.count_is_public or spec.by is not None:
        mean = mechanism.law.mean * mechanism.parameters.p
        noisy = _numbers(
            [
                float(np.trace(matrix)) - mean if each.rows is None else each.rows
                for matrix, each in zip(matrices, drawn, strict=True)
            ]
        ).reshape(parts)
    # A fold is drawn independently of the data: if the number of rows is public, so is its size.
    fold_rows = (exact if spec.neighbours.count_is_public else noisy).sum(axis=0)
    return DrawnSums(np.array(matrices).reshape(*parts, *matrices[0].shape), noisy, fold_rows)


def draw_further(plan: Plan, sums: Mapping[str, Sequence[Sum]]) -> dict[str, Array]:
    """The noisy sums of every further matrix, in the units in which they are published.

    Drawn once; shapes (groups, width, width).
    """
    drawn = {}
    for name, mechanism in plan.calibration.further.items():
        parts = sums.get(name, ())
        if len(parts) != plan.spec.groups_count:
            raise wordings.sums_not_as_planned()
        unit = plan.spec.further_rows[name].norm / mechanism.lattice.divisor
        noisy = [mechanism.perturb(require_gram(part.gram), part.rows) for part in parts]
        drawn[name] = np.array([each.gram.astype(np.float64) * unit for each in noisy])
    return drawn


def _numbers(values: Sequence[float]) -> Array:
    return np.array(values, np.float64)


def require_gram(gram: NDArray[Any] | None) -> NDArray[Any]:
    """The Gram matrix of a sum, which exists unless rows are unscaled."""
    if gram is None:
        raise wordings.sums_not_as_planned()
    return gram


def write_matrices(
    folder: Path,
    manifest: ReleaseManifest,
    matrix: Array,
    folds: Sequence[Array] = (),
    histograms: Sequence[Histogram] = (),
    groups: Sequence[GroupMatrices] = (),
    further: Sequence[Array] = (),
    whitening: Whitening | None = None,
) -> None:
    """Write a released matrix with its repaired forms, folds, groups, card and description.

    Parameters
    ----------
    matrix, folds
        In the metric in which they were drawn.
    further
        The further matrices, if there are any.
    whitening
        The pilot matrix and its metric, if there are any.
    """
    law, denoised = manifest.noise, list[Array]()
    unbiased = matrix - law.mean * np.eye(len(matrix)) if law.mean else matrix
    projected = project(unbiased, manifest.trace_bound)
    if law.has_noise:
        bound, rows = manifest.trace_bound, manifest.rows.value
        unit = manifest.normalisation.unit_rows
        denoised.append(denoise(unbiased, law, bound, rows, unit=unit))
    of_rows = [scaled(manifest, whitening, x) for x in (matrix, projected, *denoised, *folds)]
    matrices = [*of_rows, *further]
    if whitening is not None:
        matrices += [] if whitening.pilot is None else [whitening.pilot]
        matrices.append(whitening.metric)
        matrices += [matrix] if whitening.root_of(manifest) is not None else []
    write_release(folder, manifest, matrices, histograms, groups)


def scaled(manifest: ReleaseManifest, whitening: Whitening | None, matrix: Array) -> Array:
    """A matrix that was drawn in the metric, in the units of the released one."""
    root = None if whitening is None else whitening.root_of(manifest)
    return matrix if root is None else congruence(root, matrix)


def denoised_group(manifest: ReleaseManifest, rows: float, raw: Array) -> Array:
    """The denoised matrix of a group; shape (p, p)."""
    law, unit = manifest.group_noise(rows), manifest.normalisation.unit_rows
    bound = manifest.trace_bound
    matrix: Array = denoise(raw, law, bound, rows, unit=unit)
    return matrix


def release_manifest(
    spec: ReleaseSpec,
    *,
    release: str,
    published: str,
    row_counts: Sequence[float],
    group_counts: Sequence[Sequence[float]] = (),
    versions: dict[str, str],
    sources: Mapping[str, str] | None = None,
    histograms: Sequence[Histogram] = (),
) -> ReleaseManifest:
    """The manifest of a release; everything except the keyword arguments follows from `spec`."""
    calibrated = calibrate(spec)
    mechanism = calibrated.mechanism
    publisher = publisher_of(mechanism, averaging=bool(sources))
    publication = publisher.publication
    delta, requested = spec.mechanism.get("delta", 0.0), spec.mechanism.get("epsilon")
    guarantee = guarantee_facts(calibrated.guarantee, delta, requested)
    folds = rows_facts(spec, mechanism, row_counts)
    rows = publisher.rows(spec, folds, histograms)
    calibration = CalibrationFacts(
        constants=calibrated.constants(),
        arithmetic=mechanism.arithmetic,
        lattice=_lattice_facts(mechanism),
    )
    noise = mechanism.matrix_law(rows.value, spec.parts)
    return ReleaseManifest(
        **{name: getattr(spec, name) for name in ReleaseSpec.model_fields},
        format=FORMAT,
        kind=publication.name,
        release=release,
        published=published,
        rows=rows,
        fold_rows=tuple(folds if spec.folds > 1 else ()),
        groups=_group_facts(spec, mechanism, group_counts),
        calibration=calibration,
        guarantee=guarantee,
        noise=noise,
        lost=_lost_facts(spec, calibrated.lost, rows.value),
        missing=_missing_facts(spec, calibrated.missing, rows.value),
        trace_bound=mechanism.trace_bound,
        sources=dict(sources or {}) if publisher is _AVERAGE else {},
        card=dp_card(spec, publication, calibration, guarantee, noise),
        software=versions,
    )


def _lost_facts(spec: ReleaseSpec, mechanism: Gaussian | None, rows: float) -> LostFacts | None:
    """How the matrix of lost moments is published."""
    lost = spec.lost_rows
    if lost is None or mechanism is None:
        return None
    return LostFacts(
        intercept=lost.intercept,
        noise=mechanism.matrix_law(rows / lost.norm, spec.groups_count),
        lattice=_lattice_facts(mechanism),
    )


def _missing_facts(
    spec: ReleaseSpec, mechanism: Gaussian | None, rows: float
) -> MissingFacts | None:
    """How the matrix of missing cells is published."""
    missing = spec.missing_rows
    if missing is None or mechanism is None:
        return None
    return MissingFacts(
        columns=tuple(spec.columns[k].name for k in missing.columns),
        cut=missing.cut,
        indicator=missing.indicator,
        noise=mechanism.matrix_law(rows / missing.norm, spec.groups_count),
        lattice=_lattice_facts(mechanism),
    )


def _lattice_facts(mechanism: Mechanism) -> LatticeFacts:
    return LatticeFacts(bits=mechanism.lattice.bits, shrinkage=mechanism.lattice.shrinkage)


def rows_facts(
    spec: ReleaseSpec, mechanism: Mechanism, row_counts: Sequence[float]
) -> list[RowsFacts]:
    """The number of rows by which the matrix of each fold is divided.

    Parameters
    ----------
    row_counts
        One number for each fold, or one for the table. If the number of rows is public, so are the
        sizes of folds, which are drawn independently of the data; one number may then be left out.
        Otherwise a noisy count if the mechanism publishes one, or the noisy trace, to which each
        unit row adds one. Numbers below one are replaced by one, so that division is defined.
    """
    count = spec.public_count
    if spec.neighbours.count_is_public or mechanism.sd_count is None:
        sizes = list(row_counts) if spec.folds > 1 else [float(count)]
        are_counts = all(size >= 0 and size == round(size) for size in sizes)
        if len(sizes) != spec.folds or not are_counts or sum(sizes) != count:
            raise ValueError
        return [_rows(size, "public", 0.0) for size in sizes]
    if len(row_counts) != spec.folds:
        raise ValueError
    sd = mechanism.sd_count * math.sqrt(spec.groups_count)
    return [_rows(count, "noisy", sd) for count in row_counts]


def _group_facts(
    spec: ReleaseSpec, mechanism: Mechanism, group_counts: Sequence[Sequence[float]]
) -> tuple[GroupFacts, ...]:
    """The numbers of rows of groups, from those of their folds; ValueError if others differ."""
    if spec.by is None or mechanism.sd_count is None:
        return ()
    groups = []
    for level, counts in zip(group_names(spec.by), group_counts, strict=True):
        folds = [_rows(count, "noisy", mechanism.sd_count) for count in counts]
        own = tuple(folds if spec.folds > 1 else ())
        groups.append(GroupFacts(level=level, rows=total_rows(folds), fold_rows=own))
    return tuple(groups)


def _rows(count: float, status: Literal["public", "noisy"], sd: float) -> RowsFacts:
    return RowsFacts(value=max(1.0, count), observed=count, status=status, sd=sd)


def total_rows(folds: Sequence[RowsFacts]) -> RowsFacts:
    """The number of rows of all folds; unbiased, because it sums the unadjusted counts."""
    first = folds[0]
    total = sum(fold.observed for fold in folds)
    return _rows(total, first.status, first.sd * math.sqrt(len(folds)))


def arrays_close(left: Array, right: Array | None, scale: float = 0.0) -> bool:
    """Whether two arrays agree to six digits of their largest entry, or of `scale` if larger.

    The scale matters if all entries are rounding errors, which differ between machines.
    """
    if right is None or left.shape != right.shape:
        return False
    tolerance = _TOLERANCE * max(scale, float(np.abs(left).max(initial=0)))
    return bool(np.allclose(left, right, rtol=0, atol=tolerance))


def check_lattice(path: Path, units: Array) -> None:
    """Check that the entries of a file, in units of its lattice, are whole numbers."""
    # Beyond 2^40 units, a double cannot show whether it is a multiple of the unit.
    visible = np.abs(units) < 2.0**40
    if not (np.abs(units - np.rint(units))[visible] < 1e-2).all():
        raise families.CONTRADICTION(
            "{path}: the entries are not on the stated lattice.",
            "Ask the curator for the bundle that was published.",
            path=str(path),
        )


def _check_further(place: Path, bundle: ReleaseBundle) -> None:
    """Check the lattice and the size of further matrices, and the lattice of those of groups."""
    facts, mechanisms = bundle.manifest, calibrate(bundle.manifest).further
    for name, matrix in bundle.further.items():
        path, norm = place / f"{FURTHER[name]}.npy", facts.further_rows[name].norm
        unit = norm / mechanisms[name].lattice.divisor
        noise = facts.further_facts[name].noise
        largest = norm * most_rows(facts.rows) / facts.rows.value + 60 * noise.sd_diagonal
        check_entries(path, matrix, largest)
        check_lattice(path, matrix * facts.rows.value / unit)
        for group, own in zip(bundle.groups, facts.groups, strict=True):
            # No group has more than all rows, or more noise than all groups together.
            moved = group.further[name] * (own.rows.value / facts.rows.value)
            check_entries(place / GROUP_FILES[name], moved, largest)
            check_lattice(place / GROUP_FILES[name], group.further[name] * own.rows.value / unit)


def most_rows(rows: RowsFacts) -> float:
    """The largest number of rows that its noise allows."""
    return max(rows.observed, 0.0) + 60 * rows.sd


def _check_size(path: Path, bundle: ReleaseBundle) -> None:
    """Check that no entry of the matrix or of a fold is larger than the noise explains."""
    facts = bundle.manifest
    # The noise on the sum of one fold.
    fold_law = facts.noise.divided_by(math.sqrt(facts.folds) / facts.rows.value)
    matrices = [(path, bundle.drawn, facts.noise, facts.rows)]
    matrices += [
        (path, bundle.in_metric(fold), fold_law.divided_by(part.value), part)
        for fold, part in zip(bundle.folds, facts.fold_rows, strict=True)
    ]
    # No group has more than all rows, or more noise than all groups together.
    matrices += [
        (
            path.with_name(GROUPS),
            bundle.in_metric(group.raw) * (own.rows.value / facts.rows.value),
            facts.noise,
            facts.rows,
        )
        for group, own in zip(bundle.groups, facts.groups, strict=True)
    ]
    for file, matrix, law, rows in matrices:
        largest = facts.trace_bound * most_rows(rows) / rows.value
        check_entries(file, matrix, largest + facts.noise.mean + 60 * law.sd_diagonal)


def check_entries(path: Path, matrix: Array, largest: float) -> None:
    """Check that no entry of a file is larger than it can be."""
    if not (np.abs(matrix) <= largest).all():
        raise families.CONTRADICTION(
            "{path}: entries are larger than the noise explains.",
            "Ask the curator for the bundle that was published.",
            path=str(path),
        )


def group_parts(bundle: ReleaseBundle) -> list[tuple[Array, RowsFacts]]:
    """Every matrix of a group, or of its folds if there are any, and its number of rows."""
    parts = []
    for group, facts in zip(bundle.groups, bundle.manifest.groups, strict=True):
        matrices = zip(group.folds or (group.raw,), facts.fold_rows or (facts.rows,), strict=True)
        parts += list(matrices)
    return parts


# Facts that all sources must share, so that their reports can be summed.
_SHARED_FACTS = ("columns", "intercept", "neighbours", "privacy_unit", "normalisation", "mechanism")


def sum_reports(plan: Plan, places: Sequence[str]) -> ReportSum:
    """Read and verify reports, and sum them."""
    total, rows = np.zeros((plan.columns, plan.columns)), 0
    sources, datasets, digests = dict[str, str](), set[str](), set[str]()
    for place in map(Path, places):
        bundle = read_release(place)
        if bundle.manifest.publication is not REPORTS:
            raise families.REPORTS(
                "{path} does not contain reports.",
                "Name releases that 'gramercy randomize' made.",
                path=str(place),
            )
        theirs, requested = bundle.manifest.model_dump(), plan.spec.model_dump()
        for key in _SHARED_FACTS:
            if theirs[key] != requested[key]:
                if key == "columns":
                    raise families.REPORTS(
                        "{path}: the columns of its reports differ from those of the request.",
                        "Sources and server must use the same columns, bounds and scales.",
                        path=str(place),
                    )
                raise families.REPORTS(
                    "{path}: its reports were made with {key}: {theirs}, and the request has "
                    "{key}: {requested}.",
                    "Sources and server must use the same value.",
                    path=str(place),
                    key=key,
                    theirs=str(theirs[key]),
                    requested=str(requested[key]),
                )
        facts = bundle.manifest
        rows_digest = file_digest(place / str(facts.publication.rows_file))
        if facts.dataset.id in datasets or rows_digest in digests:
            raise families.REPORTS(
                "{path}: the reports of '{dataset}' are given twice.",
                "Name one release of each source: counting a person twice doubles their privacy "
                "loss.",
                path=str(place),
                dataset=facts.dataset.id,
            )
        datasets.add(facts.dataset.id)
        digests.add(rows_digest)
        sources[f"{facts.dataset.id}/{facts.release}"] = bundle.sha256
        total += bundle.raw * facts.rows.value
        rows += round(facts.rows.value)
    if rows != plan.contract.rows:
        raise families.REPORTS(
            "There are {reports} reports, but the contract's 'rows' is {rows}.",
            "Name all sources, or correct the contract.",
            reports=rows,
            rows=plan.contract.rows,
        )
    return ReportSum(total, rows, sources)


def check_same_sources(context: Context, plan: Plan, release: str, places: Sequence[str]) -> None:
    """Check that the published average of this request was made from these reports."""
    place = context.archive.release(plan.contract.id, release)
    averaged = set(read_release(place).manifest.sources.values())
    if averaged != {read_release(Path(each)).sha256 for each in places}:
        raise families.REPORTS(
            "This request was already published as '{release}', from other reports.",
            "Use another version; it is a new charge.",
            release=f"{plan.contract.id}/{release}",
        )
