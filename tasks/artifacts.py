"""What auditors find in the Prefect run itself."""

from __future__ import annotations

from prefect.artifacts import create_table_artifact

from archive.package import read_manifest
from archive.store import Archive
from schemas.home import Home
from schemas.manifest import ReleaseManifest


def log_guarantee(dataset: str, release: str) -> None:
    """Attach a release's privacy parameters, as its sealed manifest states them, to the run."""
    place = Archive(Home.default().archive).release(dataset, release)
    facts = read_manifest(place, ReleaseManifest)
    rows = {
        "release": f"{dataset}/{release}",
        "published": facts.published,
        "neighbours": facts.neighbours,
        "unit": facts.unit,
        "normalisation": facts.normalisation.kind,
        "mechanism": facts.mechanism["name"],
        "arithmetic": facts.calibration.arithmetic,
        **facts.calibration.constants,
        **facts.guarantee.model_dump(),
        "sd_diagonal": facts.noise.sd_diagonal,
        "sd_off_diagonal": facts.noise.sd_off_diagonal,
    }
    create_table_artifact(
        table=[{"parameter": name, "value": str(value)} for name, value in rows.items()],
        key=f"privacy-{dataset}",
        description=f"Privacy parameters of release {dataset}/{release}",
    )
