"""Compute the manifest of a release from public facts, both to write and to verify it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

from gramercy.archive.bundles.card import dp_card
from gramercy.estimators.marginals import counted_rows
from gramercy.mechanisms.mechanism import Additive, Mechanism
from gramercy.pipeline.plan.calibration import calibrate, guarantee_facts, noise_law
from gramercy.schemas.evidence import Histogram, last_stage
from gramercy.schemas.facts import (
    CalibrationFacts,
    GroupFacts,
    LatticeFacts,
    RowsFacts,
    group_names,
)
from gramercy.schemas.manifest import FORMAT, ReleaseManifest, ReleaseSpec


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
    """The manifest of a release; everything except the keyword arguments follows from `spec`.

    Parameters
    ----------
    spec
        The public facts that determine the release.
    release, published, versions
        Id, day of publication, and versions of the software.
    row_counts
        See `rows_facts`.
    group_counts
        For each group, the noisy numbers of rows of its folds.
    sources
        For an average of reports: the averaged releases, with their checksums.
    histograms
        Those that the release publishes, if any.
    """
    calibrated = calibrate(spec)
    mechanism = calibrated.mechanism
    if mechanism.publishes != "reports":
        sources = None
    kind = "second-moment" if sources else mechanism.publishes
    lattice = mechanism.lattice
    delta, requested = spec.mechanism.get("delta", 0.0), spec.mechanism.get("epsilon")
    guarantee = guarantee_facts(calibrated.guarantee, delta, requested)
    folds = rows_facts(spec, mechanism, row_counts)
    rows = total_rows(folds)
    if kind == "marginals" and spec.neighbours == "add-remove":
        rows = counted_rows(last_stage(histograms))
    calibration = CalibrationFacts(
        constants=calibrated.constants(),
        arithmetic=mechanism.arithmetic,
        lattice=LatticeFacts(bits=lattice.bits, shrinkage=lattice.shrinkage),
    )
    noise = noise_law(mechanism, rows.value, spec.parts)
    return ReleaseManifest(
        **{name: getattr(spec, name) for name in ReleaseSpec.model_fields},
        format=FORMAT,
        kind=kind,
        release=release,
        published=published,
        rows=rows,
        fold_rows=tuple(folds if spec.folds > 1 else ()),
        groups=group_facts(spec, mechanism, group_counts),
        calibration=calibration,
        guarantee=guarantee,
        noise=noise,
        trace_bound=largest_trace(spec, mechanism),
        sources=dict(sources or {}),
        card=dp_card(spec, kind, calibration, guarantee, noise),
        software=versions,
    )


def rows_facts(
    spec: ReleaseSpec, mechanism: Mechanism, row_counts: Sequence[float]
) -> list[RowsFacts]:
    """The number of rows by which the matrix of each fold is divided.

    Parameters
    ----------
    spec, mechanism
        The release, and the mechanism that `calibrate` gives for it.
    row_counts
        One number for each fold, or one for the table. If the number of rows is public, so are the
        sizes of folds, which are drawn independently of the data; one number may then be left out.
        Otherwise a noisy count if the mechanism publishes one, or the noisy trace, to which each
        unit row adds one. Numbers below one are replaced by one, so that division is defined.

    Raises
    ------
    ValueError
        If the number of folds differs, or the sizes are impossible.
    """
    count = spec.dataset.count
    if spec.neighbours == "replace-one" or not isinstance(mechanism, Additive):
        sizes = list(row_counts) if spec.folds > 1 else [float(count)]
        are_counts = all(size >= 0 and size == round(size) for size in sizes)
        if len(sizes) != spec.folds or not are_counts or sum(sizes) != count:
            raise ValueError
        return [_rows(size, "public", 0.0) for size in sizes]
    if len(row_counts) != spec.folds:
        raise ValueError
    sd = _sd_rows(spec, mechanism) * math.sqrt(spec.groups_count)
    return [_rows(count, "noisy", sd) for count in row_counts]


def group_facts(
    spec: ReleaseSpec, mechanism: Mechanism, group_counts: Sequence[Sequence[float]]
) -> tuple[GroupFacts, ...]:
    """The numbers of rows by which the matrices of groups are divided.

    Parameters
    ----------
    spec, mechanism
        See `rows_facts`.
    group_counts
        For each group, the noisy numbers of rows of its folds; empty without groups.

    Raises
    ------
    ValueError
        If the number of groups differs.
    """
    if spec.by is None or not isinstance(mechanism, Additive):
        return ()
    sd, groups = _sd_rows(spec, mechanism), []
    for level, counts in zip(group_names(spec.by), group_counts, strict=True):
        folds = [_rows(count, "noisy", sd) for count in counts]
        own = tuple(folds if spec.folds > 1 else ())
        groups.append(GroupFacts(level=level, rows=total_rows(folds), fold_rows=own))
    return tuple(groups)


def _sd_rows(spec: ReleaseSpec, mechanism: Additive) -> float:
    """Standard deviation of the noisy number of rows of one part: a count, or the noisy trace."""
    return mechanism.sd_rows or mechanism.law.sd_diagonal * math.sqrt(len(spec.names))


def _rows(count: float, status: Literal["public", "noisy"], sd: float) -> RowsFacts:
    return RowsFacts(value=max(1.0, count), observed=count, status=status, sd=sd)


def total_rows(folds: Sequence[RowsFacts]) -> RowsFacts:
    """The number of rows of all folds; unbiased, because it sums the unadjusted counts."""
    first = folds[0]
    total = sum(fold.observed for fold in folds)
    return _rows(total, first.status, first.sd * math.sqrt(len(folds)))


def largest_trace(spec: ReleaseSpec, mechanism: Mechanism) -> float:
    """A public upper bound on the trace of the matrix without noise.

    The second moment of rows in the unit ball has a trace of at most 1. A graphical lasso solution
    T for S satisfies tr(S T) + penalty ||T||_1 = p, so its trace is at most p / penalty.
    """
    if mechanism.publishes == "precision":
        return mechanism.parameters.p / float(spec.mechanism["penalty"])
    bounds = mechanism.parameters.sensitivity_bounds
    return float(bounds.squared_norm) if bounds and spec.normalisation.keeps_rows else 1.0
