"""Estimate from a published release; reads the archive only, and seals the result next to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramercy.application.context import Context
from gramercy.application.progress import steps_bar
from gramercy.application.seal_once import seal_once
from gramercy.archive.estimate_bundle import EstimateBundle, read_estimate, write_estimate
from gramercy.archive.release_bundle import ReleaseBundle, read_release, software_versions
from gramercy.common.similar_names import most_similar_first
from gramercy.estimators import Estimate, Estimator, registry
from gramercy.estimators.tuning.parallel import reporting_progress
from gramercy.schemas.groups import group_names
from gramercy.schemas.manifest import FORMAT, EstimateManifest, ReleaseManifest, ReleaseSpec
from gramercy.schemas.problems import publication as problems
from gramercy.schemas.problems.analyses import unknown_group


def estimate(context: Context, dataset: str, release: str, estimator: Estimator) -> str:
    """Compute one estimate, unless it exists; returns its id."""
    return make_estimate(context, dataset, release, estimator).manifest.estimate


def make_estimate(
    context: Context, dataset: str, release: str, estimator: Estimator
) -> EstimateBundle:
    """Compute and seal an estimate of a release; equal settings give the same estimate.

    Raises
    ------
    BundleError
        If the release differs from what was sealed.
    """
    archive = context.archive
    place = archive.estimate(dataset, release, estimator.id)
    with seal_once(context, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            with steps_bar(estimator.name) as bar, reporting_progress(bar):
                manifest, result = fit(bundle, estimator)
            write_estimate(staged, manifest, result.matrices, result.tables, result.edges)
    return read_estimate(place)


def check_estimable(facts: ReleaseManifest) -> None:
    """Refuse a release that estimators cannot take.

    Raises
    ------
    RequestError
        If it is not a second moment.
    """
    name = f"{facts.dataset.id}/{facts.release}"
    if facts.kind == "precision":
        raise problems.release_is_precision(name)
    if facts.kind == "marginals":
        raise problems.release_has_no_matrix(name, facts.release)


def check_group(spec: ReleaseSpec, estimator: Estimator) -> None:
    """Refuse an estimate from a group that the release does not have.

    Raises
    ------
    UnknownName
    """
    names = () if spec.by is None else group_names(spec.by)
    if estimator.group is not None and estimator.group not in names:
        known = most_similar_first(estimator.group, names)
        raise unknown_group(spec.dataset.id, estimator.group, known)


def fit(bundle: ReleaseBundle, estimator: Estimator) -> tuple[EstimateManifest, Estimate]:
    """Compute an estimate and its manifest.

    Raises
    ------
    RequestError
        If the settings give no finite matrix, or are not possible for this release.
    """
    facts = bundle.manifest
    check_estimable(facts)
    check_group(facts, estimator)
    result = estimator.fit(bundle.evidence.of_group(estimator.group))
    if not all(np.isfinite(matrix).all() for matrix in result.matrices.values()):
        raise problems.estimate_not_finite(estimator.name)
    manifest = EstimateManifest(
        format=FORMAT,
        kind=result.kind,
        estimate=estimator.id,
        dataset=facts.dataset,
        release=facts.release,
        release_sha256=bundle.sha256,
        names=tuple(facts.names),
        estimator=estimator.model_dump(),
        tuning=dict(result.tuning),
        matrices=tuple(result.matrices),
        tables=tuple(result.tables),
        graph=result.edges is not None,
        privacy="post-processing of the release; no further privacy cost",
        software=software_versions(),
    )
    return manifest, result


def estimator_from_settings(settings: Mapping[str, Any]) -> Estimator:
    """The estimator with the settings that a manifest states."""
    return registry[settings["name"]].model_validate(dict(settings))
