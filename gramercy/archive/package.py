"""datapackage.json (Data Package v2): the bundle's files, and its manifest as the ``dp`` object."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from gramercy.archive.bundle import file_digest
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import (
    FORMAT,
    FORMATS,
    EstimateManifest,
    ReleaseManifest,
    ReportManifest,
    WithdrawalManifest,
)
from gramercy.schemas.model import Model, parse

DESCRIPTOR = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
EDGES = "edges"  # an estimate's graph, as a table
_TYPES = {
    ".parquet": ("parquet", "application/vnd.apache.parquet"),
    ".npy": ("npy", "application/octet-stream"),
    ".csv": ("csv", "text/csv"),
    ".md": ("md", "text/markdown"),
    ".html": ("html", "text/html"),
    ".graphml": ("graphml", "application/graphml+xml"),
}

AnyManifest = ReleaseManifest | EstimateManifest | ReportManifest | WithdrawalManifest
Manifest = TypeVar("Manifest", bound=Model)


def descriptor(
    folder: Path,
    name: str,
    title: str,
    files: Sequence[str],
    manifest: AnyManifest,
) -> dict[str, Any]:
    """The description of a bundle's files, as plain data.

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
        "$schema": PROFILE,
        "name": name.lower(),
        "title": title,
        "version": manifest.dataset.version,
        "resources": [_resource(folder / file, manifest) for file in files],
        "dp": manifest.model_dump(mode="json"),
    }
    plain: dict[str, Any] = json.loads(json.dumps(package, allow_nan=False))
    return plain


def write_descriptor(folder: Path, package: dict[str, Any]) -> None:
    """Write datapackage.json."""
    text = json.dumps(package, indent=2, ensure_ascii=False, allow_nan=False)
    (folder / DESCRIPTOR).write_text(text + "\n", encoding="utf-8", newline="\n")


def read_descriptor(folder: Path) -> dict[str, Any]:
    """Read datapackage.json.

    Raises
    ------
    BundleError
        If it is none.
    """
    path = folder / DESCRIPTOR
    try:
        package = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        package = None
    if not isinstance(package, dict):
        raise BundleError(f"{path}: is not the description of a bundle.")
    return package


def read_manifest(folder: Path, kind: type[Manifest]) -> Manifest:
    """The ``dp`` object of a bundle.

    Raises
    ------
    BundleError
        If there is none, or not of this kind.
    """
    facts = read_descriptor(folder).get("dp")
    stated = facts.get("format") if isinstance(facts, dict) else FORMAT
    if stated not in FORMATS:
        raise BundleError(
            f"{folder / DESCRIPTOR}: is of format {stated!r:.20}, not one of {FORMATS}.",
            "Use the version of Gramercy that wrote it; its manifest states it, as 'software'.",
        )
    return parse(kind, facts, str(folder / DESCRIPTOR), BundleError)


def resource(path: Path, name: str, within: Path) -> dict[str, Any]:
    """What a data package says of any file: its name, place, form, size and digest."""
    kind, media = _TYPES[path.suffix]
    return {
        "name": name,
        "path": path.relative_to(within).as_posix(),
        "format": kind,
        "mediatype": media,
        "bytes": path.stat().st_size,
        "hash": f"sha256:{file_digest(path)}",
    }


def _resource(path: Path, manifest: AnyManifest) -> dict[str, Any]:
    name = path.name.lower().replace(".", "-").replace("_", "-")
    found, kind = resource(path, name, path.parent), path.suffix.removeprefix(".")
    table = isinstance(manifest, EstimateManifest) and path.stem in {*manifest.tables, EDGES}
    if kind == "parquet" or (kind == "csv" and table):
        found["schema"] = {"fields": fields(path.with_suffix(".parquet"))}
    elif kind == "csv" and isinstance(manifest, ReleaseManifest | EstimateManifest):
        numbers = [{"name": name, "type": "number"} for name in manifest.names]
        found["schema"] = {"fields": [{"name": "column", "type": "string"}, *numbers]}
    return found


def fields(path: Path) -> list[dict[str, str]]:
    """Names and types of a Parquet file's columns."""
    return [
        {
            "name": field.name,
            "type": "number"
            if pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
            else "string",
        }
        for field in pq.read_schema(path)
    ]
