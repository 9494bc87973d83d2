"""Verify a release against other releases that it was computed from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_release
from gramercy.archive.store.archive import Archive
from gramercy.pipeline.plan.scaling_plan import constants_of_release
from gramercy.pipeline.verify.comparison import arrays_close
from gramercy.pipeline.verify.release_checks import MATRIX, check_same_constants
from gramercy.schemas import families, wordings
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.problem import Notice

SourceCheck = Callable[[Archive, Path, ReleaseBundle], tuple[str, Notice | None]]


def source_checks(facts: ReleaseManifest) -> list[SourceCheck]:
    """The checks of a release against other releases that it was computed from."""
    constants = facts.scaling is not None and facts.scaling.kind == "release"
    checks: list[SourceCheck] = [_check_average] if facts.sources else []
    return [*checks, *([_check_released_constants] if constants else [])]


def _check_average(
    archive: Archive, place: Path, bundle: ReleaseBundle
) -> tuple[str, Notice | None]:
    """Recompute an average of reports, if all of them are in this archive.

    Returns
    -------
    tuple
        What was verified, in words; or an empty text and a notice of what could not be verified.
    """
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
    """Recompute constants that were taken from another release, if it is in this archive.

    Returns
    -------
    tuple
        As of `_check_average`.
    """
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
    spec = constants_of_release(facts, source)
    check_same_constants(place, facts, spec, name)
    return f"constants: recomputed from the histograms of {name}", None
