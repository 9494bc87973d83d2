"""Estimate from a published release; reads the archive only, and seals the result beside it."""

from __future__ import annotations

from gramercy.application.calibration import fit
from gramercy.application.progress import turns_bar
from gramercy.application.seal_once import sealed_once
from gramercy.archive.estimate_bundle import EstimateBundle, read_estimate, write_estimate
from gramercy.archive.release_bundle import read_release
from gramercy.archive.store import Archive
from gramercy.common.home import Home
from gramercy.estimators import Estimator
from gramercy.estimators.tuning.parallel import watched


def estimate(dataset: str, release: str, estimator: Estimator) -> str:
    """Compute one estimate, or find it done; returns its id."""
    archive = Archive.of(Home.default())
    return make_estimate(archive, dataset, release, estimator).manifest.estimate


def make_estimate(
    archive: Archive, dataset: str, release: str, estimator: Estimator
) -> EstimateBundle:
    """Seal an estimate beside its release; the same settings twice give the one estimate.

    Raises
    ------
    BundleError
        If the release is not what was sealed.
    """
    place = archive.estimate(dataset, release, estimator.id)
    with sealed_once(archive, place) as staged:
        if staged is not None:
            bundle = read_release(archive.release(dataset, release))
            with turns_bar(estimator.name) as bar, watched(bar):
                manifest, found = fit(bundle, estimator)
            write_estimate(staged, manifest, found.matrices, found.tables, found.edges)
    return read_estimate(place)
