"""Estimate from a published release; reads the archive only, and seals the result beside it."""

from __future__ import annotations

from archive.estimate import EstimateBundle, read_estimate, write_estimate
from archive.release import read_release
from archive.store import Archive
from estimators import Estimator
from estimators.tuning.side_by_side import watched
from schemas.home import Home
from tasks.beside import sealed_once
from tasks.manifest import fit
from tasks.policy import private_task
from tasks.progress import turns_bar


@private_task
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
