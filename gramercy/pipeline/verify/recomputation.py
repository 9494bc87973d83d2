"""Recompute what a release, its estimates and its reports state, from its public facts.

Numbers are compared up to rounding differences between machines.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from gramercy.archive.bundles.bundle_kinds import (
    CARD,
    FURTHER,
    GRAPH,
    METRIC,
    PILOT,
    EstimateBundle,
    ReleaseBundle,
    estimate_descriptor,
    read_estimate,
    read_release,
    read_report,
    release_card,
    release_descriptor,
    report_descriptor,
    stems,
)
from gramercy.archive.bundles.number_files import GROUP_FILES, GROUPS, MARGINALS
from gramercy.archive.bundles.package import DESCRIPTOR, read_descriptor, read_manifest
from gramercy.archive.seal.bundle import check
from gramercy.archive.store.archive import Archive
from gramercy.common.metric import Metric
from gramercy.estimators.noise.denoise import denoise, project
from gramercy.pipeline.plan.calibration import calibrate, turning_of
from gramercy.pipeline.plan.planning import (
    ReleasedMetric,
    constants_of_release,
    missing_releases,
    read_other_releases,
    shares_of_released_constants,
    withdrawn_releases,
)
from gramercy.pipeline.publish.attachments import estimator_from_settings, fit, report_manifest
from gramercy.pipeline.publish.drawing import (
    MATRIX,
    arrays_close,
    check_entries,
    check_lattice,
    denoised_group,
    group_parts,
    most_rows,
    publisher_of,
    release_manifest,
    scaled,
)
from gramercy.pipeline.verify.agreement import check_agreement
from gramercy.pipeline.verify.stated_facts import (
    check_facts,
    check_no_extra_files,
    contradiction,
    facts_equal,
)
from gramercy.pipeline.verify.steps import check_earlier, check_encoded, check_series
from gramercy.scaling.chain import ConstantsChain, longest_row, replayed
from gramercy.scaling.shares import Shares, follow, follow_a_share
from gramercy.scaling.whitening import Turning
from gramercy.schemas import families, wordings
from gramercy.schemas.manifest import EstimateManifest, ReleaseManifest, ReleaseSpec, ReportManifest
from gramercy.schemas.problem import Notice
from gramercy.schemas.request_parts import ScalingFacts


def _check_manifest(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    if not _follow_the_rule(facts):
        raise wordings.file_contradicts(str(place / DESCRIPTOR), "the shares of the budget")
    if (facts.dataset.id, facts.release) != (place.parent.parent.name, place.parent.name):
        described = f"{facts.dataset.id}/{facts.release}"
        raise wordings.folder_mismatch(str(place / DESCRIPTOR), described)
    recomputed = release_manifest(
        facts,
        release=place.parent.name,
        published=facts.published,
        row_counts=[part.observed for part in facts.fold_rows or [facts.rows]],
        group_counts=[
            [part.observed for part in group.fold_rows or [group.rows]] for group in facts.groups
        ],
        versions=facts.software,
        sources=facts.sources,
        histograms=bundle.histograms,
    )
    check_facts(place, facts.model_dump(), recomputed.model_dump())


def _check_constants(place: Path, bundle: ReleaseBundle) -> None:
    """Recompute the bins of histograms, and centres, scales and radius if they follow from them."""
    facts = bundle.manifest
    calibration = calibrate(facts)
    of_sum = calibration.noise_of_sum(facts)
    chain, histograms = replayed(facts, bundle.histograms, of_sum)
    noise = calibration.constants_noise
    draws = noise.draws if noise is not None else ()
    for stated, recomputed in zip(bundle.histograms, histograms, strict=False):
        same_sd = math.isclose(stated.sd, draws[stated.stage - 1].sd, rel_tol=1e-9)
        if not (
            same_sd
            and (stated.stage, stated.column, stated.level)
            == (recomputed.stage, recomputed.column, recomputed.level)
            and np.array_equal(stated.lower, recomputed.lower, equal_nan=True)
            and np.array_equal(stated.upper, recomputed.upper, equal_nan=True)
        ):
            raise wordings.file_contradicts(str(place / MARGINALS), DESCRIPTOR)
    spec = chain.clipped(histograms[-1], of_sum, calibration.noise_of_lost_sum(facts))
    if noise is not None and noise.turned is not None:
        spec = _check_metric(place, bundle, chain, spec)
    check_same_constants(place, facts, spec, MARGINALS)


_OF_METRIC = 1e-9  # relative tolerance of a metric and of lengths in it


def _check_metric(
    place: Path, bundle: ReleaseBundle, chain: ConstantsChain, spec: ReleaseSpec
) -> ReleaseSpec:
    """Recompute the metric, the bins of lengths in it, and its radius; the facts with it.

    Metrics differ between machines by some 1e-14 of their largest entry. So do the numbers by which
    the radius is chosen: that they differ in a comparison is far less likely than 1e-9. With the
    metric of another release, they follow from both; see `_with_released_metric`.
    """
    facts, whitening, (*_, lengths, turned) = bundle.manifest, bundle.whitening, bundle.histograms
    calibration = calibrate(facts)
    pilot, noise = calibration.pilot, calibration.constants_noise
    if whitening is None or noise is None or noise.turned is None:
        raise wordings.file_contradicts(str(place / MARGINALS), DESCRIPTOR)
    stated = Metric(whitening.metric)
    try:
        of_metric = stated.units * stated.step
    except ValueError:
        raise wordings.file_contradicts(str(place / f"{METRIC}.npy"), DESCRIPTOR) from None
    if not math.isclose(turned.sd, noise.turned.sd, rel_tol=1e-9):
        raise wordings.file_contradicts(str(place / MARGINALS), DESCRIPTOR)
    if pilot is None or whitening.pilot is None:
        return spec
    path, sd = place / f"{PILOT}.npy", math.sqrt(2) * pilot.noise_of_sum(1)
    check_entries(path, whitening.pilot, most_rows(facts.rows) + 60 * sd)
    check_lattice(path, whitening.pilot * pilot.lattice.divisor)
    turning = turning_of(pilot, whitening.pilot, chain, lengths, spec)
    recomputed = Metric.near(turning.metric)
    near = np.abs(of_metric - recomputed.matrix).max()
    if not near <= 2 * stated.step + _OF_METRIC * np.abs(recomputed.matrix).max():
        raise wordings.file_contradicts(str(place / f"{METRIC}.npy"), f"{PILOT}.npy")
    return _with_radius_in_metric(place, bundle, turning, chain, spec)


def _with_radius_in_metric(
    place: Path,
    bundle: ReleaseBundle,
    turning: Turning,
    chain: ConstantsChain,
    spec: ReleaseSpec,
    near: float | None = None,
) -> ReleaseSpec:
    """The facts with the radius in the published metric, whose bins of lengths are checked."""
    facts, whitening, turned = bundle.manifest, bundle.whitening, bundle.histograms[-1]
    if whitening is None:
        return spec
    edges = turning.edges(whitening.metric, longest_row(spec))
    same_bins = edges.shape == turned.lower.shape
    if not (same_bins and np.allclose(edges, turned.lower, rtol=_OF_METRIC, atol=0)):
        raise wordings.file_contradicts(str(place / MARGINALS), f"{METRIC}.npy")
    of_sum = calibrate(facts).noise_of_sum(facts)
    return chain.whitened(spec, turning, turned, whitening.metric, of_sum, near)


def _follow_the_rule(facts: ReleaseManifest) -> bool:
    """Whether the shares of the budget are those that are planned."""
    scaling = facts.scaling
    if scaling is None:
        return True
    stated = _stated_shares(scaling)
    if scaling.kind == "private":
        return follow_a_share(stated)
    rule = shares_of_released_constants(facts)
    if rule is None:
        return not any(stated.all)
    return follow(stated, rule, rule.with_metric, rule.with_pilot)


def _stated_shares(facts: ScalingFacts) -> Shares:
    return Shares(facts.stages, facts.lengths, facts.lost, facts.pilot, facts.turned)


def _check_rows(place: Path, bundle: ReleaseBundle) -> None:
    """Check the numbers of rows by which the matrix and its folds were divided.

    Under add-remove, each is the noisy trace, or a noisy count, which is a whole number.
    """
    facts = bundle.manifest
    parts = [(bundle.unbiased, facts.rows)]
    if bundle.folds:
        moments = [fold.moment for fold in bundle.evidence.folds]
        parts = list(zip(moments, facts.fold_rows, strict=True))
        total = np.sum([moment * rows.value for moment, rows in parts], axis=0)
        if not arrays_close(total / facts.rows.value, bundle.unbiased):
            raise wordings.file_contradicts(str(place / MATRIX), "its folds")
    noisy = [] if facts.neighbours.count_is_public else parts
    for moment, rows in [*noisy, *group_parts(bundle)]:
        trace = float(np.trace(moment)) * rows.value
        if facts.cumulative is not None and facts.publishes_noisy_count:
            continue  # decoded from whole numbers; see `check_earlier`
        from_trace = math.isclose(rows.observed, trace, rel_tol=1e-9, abs_tol=1e-9)
        from_count = rows.observed == round(rows.observed)
        if not (from_count if facts.publishes_noisy_count else from_trace):
            raise families.CONTRADICTION(
                "{path}: the number of rows is not the published noisy number.",
                "Ask the curator for the bundle that was published.",
                path=str(place / DESCRIPTOR),
            )


def _check_groups(place: Path, bundle: ReleaseBundle) -> None:
    """Check that groups add up to the matrix of all rows, and recompute their denoised matrices."""
    facts, path = bundle.manifest, place / GROUPS
    total = np.sum([matrix * rows.value for matrix, rows in group_parts(bundle)], axis=0)
    if not arrays_close(total / facts.rows.value, bundle.unbiased):
        raise wordings.file_contradicts(str(path), MATRIX)
    for name, matrix in bundle.further.items():
        pairs = zip(bundle.groups, facts.groups, strict=True)
        total = np.sum([x.further[name] * stated.rows.value for x, stated in pairs], axis=0)
        if not arrays_close(total / facts.rows.value, matrix):
            raise wordings.file_contradicts(str(place / GROUP_FILES[name]), f"{FURTHER[name]}.npy")
    for group, stated in zip(bundle.groups, facts.groups, strict=True):
        rows = [part.value for part in stated.fold_rows]
        total = np.sum([x * n for x, n in zip(group.folds, rows, strict=True)], axis=0)
        if rows and not arrays_close(total / stated.rows.value, group.raw):
            raise wordings.file_contradicts(str(path), "its folds")
        recomputed = denoised_group(facts, stated.rows.value, bundle.in_metric(group.raw))
        if not arrays_close(scaled(facts, bundle.whitening, recomputed), group.denoised):
            raise wordings.file_contradicts(str(path), "the noisy matrix")


def _check_noise(place: Path, bundle: ReleaseBundle) -> None:
    mechanism = calibrate(bundle.manifest).mechanism
    averaging = bool(bundle.manifest.sources)
    publisher_of(mechanism, averaging=averaging).check_noise(place, bundle, mechanism)


def check_same_constants(
    place: Path, facts: ReleaseManifest, recomputed: ReleaseSpec, source: str
) -> None:
    """Refuse a release whose constants are not those that histograms give."""
    for name in ("columns", "normalisation", "scaling"):
        # The tails of columns may differ in their last digits between machines.
        if not facts_equal(facts.model_dump()[name], recomputed.model_dump()[name]):
            raise wordings.file_contradicts(str(place / DESCRIPTOR), source)


def _check_repairs(place: Path, bundle: ReleaseBundle) -> None:
    facts = bundle.manifest
    pairs = [
        (bundle.drawn, bundle.unbiased),
        (project(bundle.drawn, facts.trace_bound), bundle.projected),
    ]
    if bundle.denoised is not None:
        denoised = denoise(
            bundle.drawn,
            facts.noise,
            facts.trace_bound,
            facts.rows.value,
            unit=facts.normalisation.unit_rows,
        )
        pairs.append((denoised, bundle.denoised))
    for stem, (recomputed, stated) in zip(stems(facts), pairs, strict=False):
        if not arrays_close(scaled(facts, bundle.whitening, recomputed), stated):
            source = f"{bundle.drawn_stem}.npy"
            raise wordings.file_contradicts(str(place / f"{stem}.parquet"), source)


def _check_files(place: Path, bundle: ReleaseBundle) -> None:
    recomputed = release_descriptor(place, bundle.manifest)
    # Keys that were added since it was published have their defaults, which `_check_manifest` sees.
    recomputed["dp"] = bundle.manifest.model_dump(mode="json", exclude_unset=True)
    check_facts(place, read_descriptor(place), recomputed)
    if (place / CARD).read_text(encoding="utf-8") != release_card(bundle.manifest):
        raise wordings.file_contradicts(str(place / CARD), DESCRIPTOR)
    check_no_extra_files(place)


Check = Callable[[Path, ReleaseBundle], None]
_HISTOGRAMS = {
    True: "constants: recomputed from the published histograms",
    False: "lengths of rows: counted in the bins that the constants give",
}


_NOISE = {
    True: "noise: the published numbers are on the stated lattice",
    False: "noise: the decoded numbers are not larger than it explains",
}


def release_checks(facts: ReleaseManifest) -> dict[str, Check]:
    """The checks of a release, each by the result that `gramercy verify` prints if it passes."""
    of_series: dict[str, Check] = {}
    if facts.cumulative is not None:  # first: the guarantee is that of a series
        words = "series: the steps of its window, and the weights of this one"
        of_series[words] = check_series
    checks: dict[str, Check] = of_series | {
        "guarantee: recomputed from the request, and exactly as stated": _check_manifest
    }
    if facts.has_histograms:
        checks[_HISTOGRAMS[facts.estimates_constants]] = _check_constants
    if facts.publication.has_matrix:
        checks |= {
            "rows: the matrix is divided by the stated number": _check_rows,
            _NOISE[facts.cumulative is None]: _check_noise,
            "repaired matrices: recomputed from the noisy one": _check_repairs,
        }
    if facts.cumulative is not None:
        checks["whole numbers: within what rows and noise explain"] = check_encoded
        checks["agreement: all sums of squares are, within their noise"] = check_agreement
    if facts.groups:
        checks["groups: add up to the matrix, and are denoised as stated"] = _check_groups
    if facts.lost is not None:
        words = "agreement: matrices and histograms agree within their noise"
        checks[words] = check_agreement
    return checks | {"description and card: agree, and list every file": _check_files}


def tables_close(left: pd.DataFrame, right: pd.DataFrame) -> bool:
    """Whether two tables agree, and their numbers to the tolerance of `arrays_close`."""
    if list(left.columns) != list(right.columns) or len(left) != len(right):
        return False
    for name in left.columns:
        if not pd.api.types.is_numeric_dtype(left[name]):
            if left[name].tolist() != right[name].tolist():
                return False
            continue
        # Scores may be infinite, and unknown numbers are NaN.
        a, b = left[name].to_numpy(float), right[name].to_numpy(float)
        finite = np.isfinite(a)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return False
        if not arrays_close(a[finite], b[finite]):
            return False
    return True


SourceCheck = Callable[[Archive, Path, ReleaseBundle], tuple[str, Notice | None]]


def source_checks(facts: ReleaseManifest) -> list[SourceCheck]:
    """The checks of a release against other releases that it was computed from."""
    constants = facts.scaling is not None and facts.scaling.kind == "release"
    checks: list[SourceCheck] = [_check_average] if facts.sources else []
    checks += [_check_released_constants] if constants else []
    return [*checks, *([check_earlier] if facts.cumulative is not None else [])]


def _check_average(
    archive: Archive, place: Path, bundle: ReleaseBundle
) -> tuple[str, Notice | None]:
    """Recompute an average of reports, if all of them are in this archive."""
    facts = bundle.manifest
    total = np.zeros_like(bundle.raw)
    for name, sha256 in facts.sources.items():
        path = archive.release(*name.split("/"))
        if not path.exists():
            return "", families.NOT_CHECKED(
                "The average was not recomputed: not all of its sources are in this archive.",
                "Verify it in an archive that has them.",
            )
        source = read_release(path)
        if source.sha256 != sha256:
            raise families.REPLACED(
                "{path}: '{release}' is not the release that was averaged.",
                "Ask the curator for the bundle that was published.",
                path=str(place / DESCRIPTOR),
                release=name,
            )
        total += source.raw * source.manifest.rows.value
    if not arrays_close(total / facts.rows.value, bundle.raw):
        raise wordings.file_contradicts(str(place / MATRIX), "its sources")
    return "average: recomputed from its sources", None


def _check_released_constants(
    archive: Archive, place: Path, bundle: ReleaseBundle
) -> tuple[str, Notice | None]:
    """Recompute constants that were taken from another release, if it is in this archive."""
    facts = bundle.manifest
    scaling = facts.scaling
    if scaling is None or scaling.release is None:
        raise ValueError
    name = f"{facts.dataset.id}/{scaling.release}"
    path = archive.release(facts.dataset.id, scaling.release)
    if not archive.contains(path):
        return "", families.NOT_CHECKED(
            "The constants were not recomputed: '{release}' is not in this archive.",
            "Verify the release in an archive that has both.",
            release=name,
        )
    source = read_release(path)
    if source.sha256 != scaling.sha256:
        raise families.REPLACED(
            "{path}: '{release}' is not the release of the constants.",
            "Ask the curator for the bundle that was published.",
            path=str(place / DESCRIPTOR),
            release=name,
        )
    rule = shares_of_released_constants(facts, source.manifest)
    if rule is not None and not follow(_stated_shares(scaling), rule):
        raise wordings.file_contradicts(str(place / DESCRIPTOR), name)
    spec = _with_released_metric(place, bundle, source, constants_of_release(facts, source))
    check_same_constants(place, facts, spec, name)
    return f"constants: recomputed from the histograms of {name}", None


def _with_released_metric(
    place: Path, bundle: ReleaseBundle, source: ReleaseBundle, spec: ReleaseSpec
) -> ReleaseSpec:
    """The facts with the radius in the metric of another release, which is checked."""
    facts, own, released = bundle.manifest, bundle.whitening, ReleasedMetric.of(source)
    if own is None or own.pilot is not None or released is None:
        return spec
    if not np.array_equal(own.metric, released.metric.matrix):
        raise wordings.file_contradicts(str(place / f"{METRIC}.npy"), source.release_evidence.name)
    if not facts.has_metric:  # no row lengths in it: the radius is known with the constants
        return spec
    chain = ConstantsChain.start(facts, calibrate(facts).noise_of_sum(facts))
    turning = chain.turning_again(bundle.histograms[-2], facts, released.pilot)
    return _with_radius_in_metric(place, bundle, turning, chain, spec, released.radius)


_SETTINGS = "the settings and the release"


def check_belongs(
    place: Path, release: ReleaseBundle, kind: type[EstimateManifest] | type[ReportManifest]
) -> None:
    """Check that an estimate or a report is of this release, and in the folder of its name."""
    facts = read_manifest(place, kind)
    name = facts.report if isinstance(facts, ReportManifest) else facts.estimate
    if (facts.release_sha256, name) != (release.sha256, place.name):
        described = f"{name} of {facts.dataset.id}/{facts.release}"
        raise wordings.folder_mismatch(str(place / DESCRIPTOR), described)


def check_estimate(
    archive: Archive, place: Path, release: ReleaseBundle
) -> tuple[str, Notice | None]:
    """Recompute an estimate from its release, and compare everything in its bundle."""
    bundle = read_estimate(place)
    stated = bundle.manifest
    estimator = estimator_from_settings(stated.estimator)
    if missing := missing_releases(archive, estimator):
        facts = release.manifest
        if set(stated.sources) != set(estimator.other_releases):
            raise contradiction(place, "sources", [*stated.sources], [*estimator.other_releases])
        known = {
            "estimate": estimator.id,
            "dataset": facts.dataset,
            "release": facts.release,
            "names": tuple(facts.names),
            "estimator": estimator.model_dump(),
        }
        check_facts(place, stated.model_dump(), stated.model_copy(update=known).model_dump())
        check_facts(place, read_descriptor(place), estimate_descriptor(place, stated))
        check_no_extra_files(place)
        return "names this release", families.NOT_CHECKED(
            "Estimate {estimate}: the numbers were not recomputed, because "
            "'{release}' is not in this archive.",
            "Verify the release in an archive that has both.",
            estimate=stated.estimate,
            release=missing[0],
        )
    others = read_other_releases(archive, estimator)
    for other in others:
        name = other.release_evidence.name
        if stated.sources.get(name) != other.sha256:
            raise families.REPLACED(
                "{path}: '{release}' is not the release that was pooled.",
                "Ask the curator for the bundle that was published.",
                path=str(place / DESCRIPTOR),
                release=name,
            )
    # Estimates that were sealed by an earlier version have no stability.
    manifest, result = fit(release, estimator, others, stability="stability" in stated.matrices)
    recomputed = manifest.model_copy(update={"software": stated.software, "tuning": stated.tuning})
    check_facts(place, stated.model_dump(), recomputed.model_dump())
    # Tuning parameters depend on eigenvectors.
    if stated.tuning.keys() != manifest.tuning.keys() or not all(
        math.isclose(value, manifest.tuning[key], rel_tol=1e-5)
        for key, value in stated.tuning.items()
    ):
        raise contradiction(place, "tuning", stated.tuning, manifest.tuning)
    for name, matrix in result.matrices.items():
        if not arrays_close(matrix, bundle.matrices[name]):
            raise wordings.file_contradicts(f"{place / name}.npy", _SETTINGS)
    for name, table in result.tables.items():
        if not tables_close(table, bundle.tables[name]):
            raise wordings.file_contradicts(f"{place / name}.parquet", _SETTINGS)
    # Edges are on the scale of correlations.
    if result.edges is not None and not arrays_close(result.edges, bundle.edges, scale=1.0):
        raise wordings.file_contradicts(str(place / GRAPH), _SETTINGS)
    check_facts(place, read_descriptor(place), estimate_descriptor(place, stated))
    check_no_extra_files(place)
    words = f"recomputed from {' and '.join(['this release', *estimator.other_releases])}"
    if withdrawn := withdrawn_releases(archive, estimator):
        return words, families.NOT_CHECKED(
            "Estimate {estimate}: '{release}', one of the releases that were pooled, "
            "was withdrawn later.",
            "Read its notice of withdrawal, and pool the other releases again.",
            estimate=stated.estimate,
            release=withdrawn[0],
        )
    return words, None


def check_report(archive: Archive, place: Path, release: ReleaseBundle) -> tuple[str, None]:
    """Verify what a report states; its page is what was sealed."""
    stated, facts = read_report(place).manifest, release.manifest
    estimates = []  # without their numbers, which are not in the report's facts
    for name in stated.estimates:
        folder = archive.estimate(facts.dataset.id, facts.release, name)
        sha256 = check(folder)
        manifest_of = read_manifest(folder, EstimateManifest)
        estimates.append(EstimateBundle(manifest_of, {}, {}, None, sha256))
    manifest = report_manifest(release, estimates)
    recomputed = manifest.model_copy(update={"software": stated.software})
    check_facts(place, stated.model_dump(), recomputed.model_dump())
    check_facts(place, read_descriptor(place), report_descriptor(place, stated))
    check_no_extra_files(place)
    return "names this release and its estimates", None
