"""Estimate from a published release; reads the archive only, and seals the result beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gramercy.application.context import Context
from gramercy.application.progress import turns_bar
from gramercy.application.seal_once import sealed_once
from gramercy.archive.estimate_bundle import EstimateBundle, read_estimate, write_estimate
from gramercy.archive.release_bundle import ReleaseBundle, read_release, software
from gramercy.estimators import Estimate, Estimator, registry
from gramercy.estimators.tuning.parallel import watched
from gramercy.schemas.errors import RequestError
from gramercy.schemas.manifest import FORMAT, EstimateManifest


def estimate(context: Context, dataset: str, release: str, estimator: Estimator) -> str:
    """Compute one estimate, or find it done; returns its id."""
    return make_estimate(context, dataset, release, estimator).manifest.estimate


def make_estimate(
    context: Context, dataset: str, release: str, estimator: Estimator
) -> EstimateBundle:
    """Seal an estimate beside its release; the same settings twice give the one estimate.

    Raises
    ------
    BundleError
        If the release is not what was sealed.
    """
    archive = context.archive
    place = archive.estimate(dataset, release, estimator.id)
    with sealed_once(context, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            with turns_bar(estimator.name) as bar, watched(bar):
                manifest, found = fit(bundle, estimator)
            write_estimate(staged, manifest, found.matrices, found.tables, found.edges)
    return read_estimate(place)


def fit(bundle: ReleaseBundle, estimator: Estimator) -> tuple[EstimateManifest, Estimate]:
    """An estimate and what it says of itself.

    Raises
    ------
    RequestError
        If the settings give no finite numbers, or suit no such release.
    """
    facts = bundle.manifest
    if facts.kind == "precision":
        raise RequestError(
            f"'{facts.dataset.id}/{facts.release}' is a precision matrix already.",
            "Estimate from a release of the second moment.",
        )
    found = estimator.fit(bundle.evidence)
    if not all(np.isfinite(matrix).all() for matrix in found.matrices.values()):
        raise RequestError(
            f"{estimator.name}: these settings give no finite matrix.", "Use a larger penalty."
        )
    manifest = EstimateManifest(
        format=FORMAT,
        kind=found.kind,
        estimate=estimator.id,
        dataset=facts.dataset,
        release=facts.release,
        release_sha256=bundle.sha256,
        names=tuple(facts.names),
        estimator=estimator.model_dump(),
        tuning=dict(found.tuning),
        matrices=tuple(found.matrices),
        tables=tuple(found.tables),
        graph=found.edges is not None,
        privacy="post-processing of the release; no further privacy cost",
        software=software(),
    )
    return manifest, found


def restored(settings: Mapping[str, Any]) -> Estimator:
    """An estimator from the settings that a manifest states."""
    return registry[settings["name"]].model_validate(dict(settings))
