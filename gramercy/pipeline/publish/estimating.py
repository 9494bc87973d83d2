"""Estimate from a published release; reads the archive only, and seals the result next to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gramercy.archive.bundles.estimate_bundle import EstimateBundle, read_estimate, write_estimate
from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_release, software_versions
from gramercy.estimators import Estimate, Estimator, registry
from gramercy.estimators.tuning.parallel import reporting_progress
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.estimable import (
    check_estimable,
    check_other_releases,
    read_other_releases,
)
from gramercy.pipeline.progress import steps_bar
from gramercy.pipeline.publish.attachments import seal_once
from gramercy.schemas import families
from gramercy.schemas.manifest import FORMAT, EstimateManifest


def estimate(context: Context, dataset: str, release: str, estimator: Estimator) -> str:
    """Compute one estimate, unless it exists; returns its id."""
    return make_estimate(context, dataset, release, estimator).manifest.estimate


def make_estimate(
    context: Context, dataset: str, release: str, estimator: Estimator
) -> EstimateBundle:
    """Compute and seal an estimate of a release; equal settings give the same estimate."""
    archive = context.archive
    place = archive.estimate(dataset, release, estimator.id)
    with seal_once(context, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            check_other_releases(archive, estimator, bundle.release_evidence.name, bundle.manifest)
            others = read_other_releases(archive, estimator)
            with steps_bar(estimator.name) as bar, reporting_progress(bar):
                manifest, result = fit(bundle, estimator, others)
            write_estimate(staged, manifest, result.matrices, result.tables, result.edges)
    return read_estimate(place)


def fit(
    bundle: ReleaseBundle, estimator: Estimator, others: Sequence[ReleaseBundle] = ()
) -> tuple[EstimateManifest, Estimate]:
    """Compute an estimate and its manifest.

    Parameters
    ----------
    others
        The other releases that the estimator needs, in the order of `Estimator.other_releases`.
    """
    facts = bundle.manifest
    check_estimable(facts)
    of_group = [each.rows_of(estimator.group) for each in (bundle, *others)]
    releases = [each.release_evidence for each in of_group]
    result = estimator.fit(estimator.evidence_of(releases))
    if not all(np.isfinite(matrix).all() for matrix in result.matrices.values()):
        raise families.ESTIMATE(
            "{estimator}: these settings give no finite matrix.",
            "Use a larger penalty.",
            estimator=estimator.name,
        )
    manifest = EstimateManifest(
        format=FORMAT,
        kind=result.kind,
        estimate=estimator.id,
        dataset=facts.dataset,
        release=facts.release,
        release_sha256=bundle.sha256,
        sources={each.name: each.sha256 for each in releases[1:]},
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
