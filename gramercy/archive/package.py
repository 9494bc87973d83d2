"""datapackage.json (Data Package v2): a bundle's files, and its manifest as the ``dp`` object."""

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
from gramercy.schemas.manifest_formats import with_present_names, with_stated_names
from gramercy.schemas.model import Model, parse
from gramercy.schemas.problems.bundle import not_a_descriptor, unknown_format

DESCRIPTOR = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
EDGES = "edges"  # the table of an estimate's graph
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
    """The content of datapackage.json, as plain data.

    Parameters
    ----------
    folder
        The bundle.
    name, title
        Name and title of the package.
    files
        Names of its files, most important first.
    manifest
        The ``dp`` object.
    """
    package = {
        "$schema": PROFILE,
        "name": name.lower(),
        "title": title,
        "version": manifest.dataset.version,
        "resources": [_resource(folder / file, manifest) for file in files],
        "dp": with_stated_names(manifest.model_dump(mode="json")),
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
        If it is missing, or not a JSON object.
    """
    path = folder / DESCRIPTOR
    try:
        package = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        package = None
    if not isinstance(package, dict):
        raise not_a_descriptor(str(path))
    return package


def read_manifest(folder: Path, kind: type[Manifest]) -> Manifest:
    """The ``dp`` object of a bundle.

    Raises
    ------
    BundleError
        If it is missing, or not of this kind.
    """
    facts = read_descriptor(folder).get("dp")
    stated = facts.get("format") if isinstance(facts, dict) else FORMAT
    if stated not in FORMATS:
        raise unknown_format(str(folder / DESCRIPTOR), f"{stated!r:.20}", FORMATS)
    present = with_present_names(facts) if isinstance(facts, dict) else facts
    return parse(kind, present, str(folder / DESCRIPTOR), BundleError)


def resource(path: Path, name: str, within: Path) -> dict[str, Any]:
    """The entry of a file in a data package: name, path, format, size and digest."""
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
    entry, kind = resource(path, name, path.parent), path.suffix.removeprefix(".")
    table = isinstance(manifest, EstimateManifest) and path.stem in {*manifest.tables, EDGES}
    if kind == "parquet" or (kind == "csv" and table):
        entry["schema"] = {"fields": fields(path.with_suffix(".parquet"))}
    elif kind == "csv" and isinstance(manifest, ReleaseManifest | EstimateManifest):
        numbers = [{"name": name, "type": "number"} for name in manifest.names]
        entry["schema"] = {"fields": [{"name": "column", "type": "string"}, *numbers]}
    return entry


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
