"""datapackage.json (Data Package v2): the bundle's files, and its manifest as the ``dp`` object."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from schemas.errors import BundleError
from schemas.manifest import EstimateManifest, ReleaseManifest
from schemas.model import Model, parse

DESCRIPTOR = "datapackage.json"
_TYPES = {
    ".parquet": ("parquet", "application/vnd.apache.parquet"),
    ".npy": ("npy", "application/octet-stream"),
    ".csv": ("csv", "text/csv"),
    ".md": ("md", "text/markdown"),
}

Manifest = TypeVar("Manifest", bound=Model)


def describe(
    folder: Path,
    name: str,
    title: str,
    files: Sequence[str],
    manifest: ReleaseManifest | EstimateManifest,
) -> None:
    """Write datapackage.json for the files of a bundle.

    Parameters
    ----------
    folder
        The bundle.
    name, title
        Of the package.
    files
        Its files, most important first.
    manifest
        Becomes the ``dp`` object.
    """
    package = {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": name.lower(),
        "title": title,
        "version": manifest.dataset.version,
        "resources": [_resource(folder / file, manifest) for file in files],
        "dp": manifest.model_dump(mode="json"),
    }
    text = json.dumps(package, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / DESCRIPTOR).write_text(text + "\n", encoding="utf-8", newline="\n")


def read_manifest(folder: Path, kind: type[Manifest]) -> Manifest:
    """The ``dp`` object of a bundle.

    Raises
    ------
    BundleError
        If there is none, or not of this kind.
    """
    path = folder / DESCRIPTOR
    try:
        package = json.loads(path.read_text(encoding="utf-8"))
        manifest = package["dp"]
    except (OSError, ValueError, KeyError, TypeError):
        raise BundleError(f"{path}: is not the description of a release.") from None
    return parse(kind, manifest, str(path), BundleError)


def _resource(path: Path, manifest: ReleaseManifest | EstimateManifest) -> dict[str, Any]:
    kind, media = _TYPES[path.suffix]
    data = path.read_bytes()
    resource: dict[str, Any] = {
        "name": path.name.lower().replace(".", "-").replace("_", "-"),
        "path": path.name,
        "format": kind,
        "mediatype": media,
        "bytes": len(data),
        "hash": f"sha256:{hashlib.sha256(data).hexdigest()}",
    }
    if kind == "parquet":
        fields = [("row", "string"), ("col", "string"), ("value", "number")]
        resource["schema"] = {"fields": [{"name": n, "type": t} for n, t in fields]}
    if kind == "csv":
        names = manifest.names if isinstance(manifest, ReleaseManifest) else manifest.columns
        numbers = [{"name": name, "type": "number"} for name in names]
        resource["schema"] = {"fields": [{"name": "column", "type": "string"}, *numbers]}
    return resource
