"""datapackage.json (Data Package v2): a bundle's files, and its manifest as the ``dp`` object.

And the texts of others in Markdown pages, and in CSV files that a spreadsheet program may open.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from gramercy.archive.bundles.encoded_file import DECODING, ENCODED
from gramercy.archive.bundles.parquet_limits import open_checked
from gramercy.archive.seal.bundle import file_digest, read_limited
from gramercy.common.disk import error_reason
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import (
    FORMAT,
    EstimateManifest,
    ReleaseManifest,
    ReportManifest,
    WithdrawalManifest,
)
from gramercy.schemas.model import Model, parse


def _not_a_descriptor(path: str) -> BundleError:
    return families.DESCRIPTION(
        "{path} is not the description of a bundle.",
        "Fetch the bundle again from its curator.",
        path=path,
    )


DESCRIPTOR = "datapackage.json"
PROFILE = "https://datapackage.org/profiles/2.0/datapackage.json"
_DESCRIPTOR_BYTES, _MOST_VALUES = 16 << 20, 1 << 20
# Of the manifest of a hostile archive, checked before it is validated.
_MOST_PARTS = 300_000  # 5000 columns or levels have about 100,000
_MOST_DEPTH = 16
# Categories Cc and Cs without tabs and ends of lines: a query to a database may have several lines.
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")
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
    """The content of datapackage.json, as plain data."""
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
    """Read datapackage.json."""
    path = folder / DESCRIPTOR
    package, data = None, read_limited(path, _DESCRIPTOR_BYTES, _not_a_descriptor)
    # Counted before it is parsed: a value of two bytes needs a hundred bytes of memory.
    if sum(map(data.count, (b",", b"{", b"["))) < _MOST_VALUES:
        with contextlib.suppress(ValueError, RecursionError):
            package = json.loads(data.decode())
    if not isinstance(package, dict):
        raise _not_a_descriptor(str(path))
    return package


def read_manifest(folder: Path, kind: type[Manifest]) -> Manifest:
    """The ``dp`` object of a bundle."""
    facts = read_descriptor(folder).get("dp")
    stated = facts.get("format") if isinstance(facts, dict) else FORMAT
    if type(stated) is not int or stated != FORMAT:
        raise families.DESCRIPTION(
            "{path} has format {stated}; this version reads format {known}.",
            "Use the version of Gramercy that its manifest names under 'software'.",
            path=str(folder / DESCRIPTOR),
            stated=f"{stated!r:.20}",
            known=FORMAT,
        )
    if not _within_limits(facts):
        raise families.SEAL(
            "{path} has too many values, is nested too deeply, or contains control characters.",
            "Fetch the bundle again from its curator.",
            path=str(folder / DESCRIPTOR),
        )
    return parse(kind, facts, str(folder / DESCRIPTOR), BundleError)


def _within_limits(facts: Any) -> bool:
    """Whether a manifest has a size and a depth that a release can have, and no control characters.

    A terminal would execute them.
    """
    left = _MOST_PARTS
    level: list[Any] = [facts]
    for _ in range(_MOST_DEPTH):
        left -= len(level)
        texts = (value for value in level if isinstance(value, str))
        if left < 0 or any(map(_CONTROL.search, texts)):
            return False
        level = [inner for value in level for inner in _parts(value)]
        if not level:
            return True
    return False


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    return value if isinstance(value, list) else ()


def resource(path: Path, name: str, within: Path) -> dict[str, Any]:
    """The entry of a file in a data package: name, path, format, size and digest.

    The size of a Parquet file is left out: frictionless reads such a file as a table, counts no
    bytes of it, and would report every stated size as wrong. The digest suffices.
    """
    kind, media = _TYPES[path.suffix]
    size = {} if kind == "parquet" else {"bytes": path.stat().st_size}
    return {
        "name": name,
        "path": path.relative_to(within).as_posix(),
        "format": kind,
        "mediatype": media,
        **size,
        "hash": f"sha256:{file_digest(path)}",
    }


def _resource(path: Path, manifest: AnyManifest) -> dict[str, Any]:
    name = path.name.lower().replace(".", "-").replace("_", "-")
    entry, kind = resource(path, name, path.parent), path.suffix.removeprefix(".")
    if path.name == ENCODED:
        entry["description"] = DECODING
    table = isinstance(manifest, EstimateManifest) and path.stem in {*manifest.tables, EDGES}
    if kind == "parquet" or (kind == "csv" and table):
        entry["schema"] = {"fields": fields(path.with_suffix(".parquet"))}
        if kind == "csv":
            for field in entry["schema"]["fields"]:
                field["name"] = not_a_formula(field["name"])
    elif kind == "csv" and isinstance(manifest, ReleaseManifest | EstimateManifest):
        numbers = [{"name": not_a_formula(name), "type": "number"} for name in manifest.names]
        entry["schema"] = {"fields": [{"name": "column", "type": "string"}, *numbers]}
    return entry


def fields(path: Path) -> list[dict[str, str]]:
    """Names and types of a Parquet file's columns."""
    try:
        with path.open("rb") as stream, open_checked(stream) as file:
            schema = file.schema_arrow
    except Exception as caught:  # a file that was tampered with may make Arrow raise anything
        unreadable = isinstance(caught, OSError) and caught.errno
        error = wordings.file_unreadable(str(path), error_reason(caught)) if unreadable else None
        raise error or wordings.not_a_table(str(path)) from None
    return [{"name": field.name, "type": _type_of(field.type)} for field in schema]


def _type_of(kind: pa.DataType) -> str:
    """Of long integers as well it is not "integer": frictionless reads at most 28 digits of one."""
    kinds = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal)
    return "number" if any(is_kind(kind) for is_kind in kinds) else "string"


_MARKUP = re.compile(r"[\\`*_\[\]<>&!|~#]")


def markdown_text(text: str) -> str:
    r"""The text as Markdown that shows it unchanged: no markup, no links, no HTML.

    Examples
    --------
    >>> print(markdown_text("<b>[x](javascript:y)"))
    \<b\>\[x\](javascript:y)
    """
    return _MARKUP.sub(r"\\\g<0>", text)


# A program may skip spaces and control characters before a formula, and accepts wide signs.
_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def not_a_formula(text: str) -> str:
    """The text, after an apostrophe if a spreadsheet program could take it for a formula.

    Such programs do not show the apostrophe. See OWASP, "CSV Injection".

    Examples
    --------
    >>> not_a_formula("=cmd|'/C calc'!A0"), not_a_formula("weight")
    ("'=cmd|'/C calc'!A0", 'weight')
    """
    return f"'{text}" if text.strip().startswith(_SIGNS) or text.startswith(_SIGNS) else text
