"""Which releases an estimate can be computed from: its own, and others that it names."""

from __future__ import annotations

from gramercy.archive.bundles.descriptions import describe_release
from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_release
from gramercy.archive.store.archive import Archive
from gramercy.common.similar_names import most_similar_first
from gramercy.estimators import Estimator
from gramercy.mechanisms import registry
from gramercy.schemas import wordings
from gramercy.schemas.facts import group_names
from gramercy.schemas.manifest import ReleaseManifest, ReleaseSpec
from gramercy.schemas.publications import ROWS, Publication


def check_estimable(facts: ReleaseManifest) -> None:
    """Refuse a release that estimators cannot take."""
    if facts.publication.refuse_estimates is not None:
        name = f"{facts.dataset.id}/{facts.release}"
        raise facts.publication.refuse_estimates(name, facts.release)


def check_group(spec: ReleaseSpec, estimator: Estimator) -> None:
    """Refuse an estimate from a group that the release does not have."""
    names = () if spec.by is None else group_names(spec.by)
    if estimator.group is not None and estimator.group not in names:
        known = most_similar_first(estimator.group, names)
        raise wordings.unknown_group(spec.dataset.id, estimator.group, known)


def check_other_releases(
    archive: Archive, estimator: Estimator, name: str, facts: ReleaseSpec
) -> None:
    """Refuse an estimate whose other releases do not exist or do not suit; matrices are not read.

    Parameters
    ----------
    name, facts
        Name and facts of the release that the estimate belongs to, which may be a planned one.
    """
    releases = [(name, facts)]
    for other in estimator.other_releases:
        listed = describe_release(archive, *_parts(other))
        if listed.withdrawn is not None:
            raise wordings.pool_of_withdrawn(other, listed.withdrawn)
        check_estimable(listed.manifest)
        releases.append((other, listed.manifest))
    estimator.check_together(releases)
    noisy = [each for each, facts in releases if _publishes(facts) is ROWS]
    if noisy and len(releases) > 1:
        raise wordings.pool_of_rows(noisy[0])


def _publishes(facts: ReleaseSpec) -> Publication:
    return registry[facts.mechanism["name"]].publishes


def missing_releases(archive: Archive, estimator: Estimator) -> list[str]:
    """The names of the other releases that the archive does not have."""
    return [
        name
        for name in estimator.other_releases
        if not archive.contains(archive.release(*_parts(name)))
    ]


def withdrawn_releases(archive: Archive, estimator: Estimator) -> list[str]:
    """The names of the other releases that have a notice of withdrawal."""
    return [
        name
        for name in estimator.other_releases
        if archive.contains(archive.withdrawal(*_parts(name)))
    ]


def read_other_releases(archive: Archive, estimator: Estimator) -> list[ReleaseBundle]:
    """The other releases that an estimate needs, verified."""
    bundles = []
    for name in estimator.other_releases:
        place = archive.release(*_parts(name))
        bundles.append(read_release(place))
        archive.verify_signer(place)
    return bundles


def _parts(name: str) -> tuple[str, str]:
    dataset, _, release = name.partition("/")
    return dataset, release
