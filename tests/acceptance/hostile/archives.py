"""Archives of an attacker: every bundle is sealed and signed, by the attacker's own key."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gramercy.archive.seal import signing
from gramercy.archive.seal.bundle import SIGNATURE, SUMS, seal
from gramercy.archive.seal.signing import steward_key
from gramercy.schemas import families
from gramercy.schemas.problem import Family
from tests.acceptance.hostile.parquet_builder import (
    BYTES,
    DELTA_BYTES,
    PLAIN,
    Chunk,
    Page,
    constant,
    delta_packed,
    parquet_of,
)

RELEASE, ROWS, NOTICE = "toy/v1-r1/release", "toy/v2-r1/release", "toy/v2-r1/withdrawn"
ESTIMATE = "toy/v1-r1/estimates/*"
ESCAPES = "T\x1b]0;owned\x07\x1b[2J\x9b2K\rx\x08"
HIDING = "T\u202ex\u2028y\u200bz\u2066w\ufeff"

Edit = Callable[[Path], None]


@dataclass(frozen=True)
class HostileArchive:
    """A case: an edit of a bundle, and the expected problem, or None if it is harmless."""

    name: str
    edit: Edit
    problem: Family[Any] | None
    bundle: str = RELEASE
    sealed: bool = True

    def __str__(self) -> str:
        return self.name

    def make(self, genuine: Path, folder: Path) -> Path:
        """Copy the genuine archive, and let the attacker change and sign one of its bundles."""
        archive = folder / "hostile"
        shutil.copytree(genuine, archive, symlinks=True)
        for path in archive.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (place,) = archive.glob(self.bundle)
        self.edit(place)
        if self.sealed:
            seal(place, folder / "attacker")
        return archive


def described(*path: str | int, value: Any) -> Edit:
    """Set a value in the manifest."""

    def edit(place: Path) -> None:
        file = place / "datapackage.json"
        package = json.loads(file.read_text())
        inner = package["dp"]
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        file.write_text(json.dumps(package))

    return edit


def description(text: str) -> Edit:
    return lambda place: _write(place / "datapackage.json", text.encode())


def content(file: str, data: bytes | Callable[[], bytes]) -> Edit:
    return lambda place: _write(place / file, data() if callable(data) else data)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def sparse(file: str, size: int) -> Edit:
    """A file that takes no space on the disk, and reads as any number of zeros."""

    def edit(place: Path) -> None:
        with (place / file).open("wb") as stream:
            stream.truncate(size)

    return edit


def signed_sums(lines: bytes) -> Edit:
    """The attacker signs any list of files."""

    def edit(place: Path) -> None:
        key = steward_key(place.parents[3] / "attacker")
        _write(place / SUMS, lines)
        _write(place / SIGNATURE, signing.sign(key, lines))

    return edit


def replaced(file: str, make: Callable[[Path], None]) -> Edit:
    def edit(place: Path) -> None:
        (place / file).unlink(missing_ok=True)
        make(place / file)

    return edit


def npy(shape: str, data: bytes = b"") -> bytes:
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + data


def texts(name: str, text: bytes, times: int, codec: str | None) -> Chunk:
    """A column of one text, repeated by prefixes: few bytes expand to many long texts."""
    prefixes = [0, *[len(text)] * (times - 1)]
    suffixes = [len(text), *[0] * (times - 1)]
    body = delta_packed(prefixes) + delta_packed(suffixes) + text
    return Chunk(name, [Page(body, times, DELTA_BYTES)], times, BYTES, codec)


def word(name: str, rows: int) -> Chunk:
    values = b"".join(len(b"c0").to_bytes(4, "little") + b"c0" for _ in range(rows))
    return Chunk(name, [Page(values, rows, PLAIN)], rows, BYTES)


def long_matrix(value: Chunk, rows: int) -> bytes:
    return parquet_of([word("row", rows), word("col", rows), value], rows)


def many_rows() -> bytes:
    return parquet_of([constant(name, 0.0, 1 << 30) for name in ("c0", "c1", "c2")], 1 << 30)


def zeros(size: int) -> bytes:
    """A page that states few values, and is decompressed to many bytes."""
    page = Page(bytes(size), 6, PLAIN)
    return long_matrix(Chunk("value", [page], 6, codec="zstd"), 6)


def long_texts() -> bytes:
    chunks = [texts(name, b"x" * (1 << 20), 4000, "zstd") for name in ("row", "col")]
    return parquet_of([*chunks, constant("weight", 1.0, 4000)], 4000)


def entities(place: Path) -> None:
    """Entities that expand to a billion letters."""
    graph = place / "graph.graphml"
    names = "abcdefghij"
    pairs = itertools.pairwise(names)
    defined = "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairs)
    _write(graph, f'<!DOCTYPE g [<!ENTITY a "x">{defined}]>{graph.read_text()}'.encode())


def external_entity(place: Path) -> None:
    graph = place / "graph.graphml"
    _write(graph, f'<!DOCTYPE g [<!ENTITY x SYSTEM "/etc/passwd">]>{graph.read_text()}'.encode())


def pickled(place: Path) -> None:
    np.save(place / "second_moment.npy", np.array([{}], dtype=object), allow_pickle=True)


def many_columns(place: Path) -> None:
    levels = [str(k) for k in range(90_000)]
    described("columns", value=[{"name": "x", "levels": levels}])(place)


def case(name: str, edit: Edit, problem: Any, bundle: str = RELEASE, **facts: Any) -> Any:
    return HostileArchive(name, edit, problem, bundle, **facts)


LIMITS, MATRIX, DIFFER = (
    families.SEAL,
    families.CONTENT,
    families.CONTENT,
)
DESCRIPTOR = families.DESCRIPTION
CASES: list[HostileArchive] = [
    case("genuine", lambda place: None, None),
    # Texts that terminals execute or hide.
    case("escapes in the title", described("dataset", "title", value=ESCAPES), LIMITS),
    case("escapes in the curator", described("dataset", "curator", value=ESCAPES), LIMITS),
    case("escapes in a column", described("columns", 0, "name", value=ESCAPES), LIMITS),
    case("escapes in a key", described("software", value={ESCAPES: "1"}), LIMITS),
    case("escapes in the card", described("card", "statement", value=ESCAPES), LIMITS),
    case("escapes in the day", described("published", value="2026\x1b[2J"), LIMITS),
    case("hidden characters in the day", described("published", value=HIDING), families.VALUE),
    case("hidden characters in the title", described("dataset", "title", value=HIDING), None),
    case("hidden characters in the card", described("card", "curator", value=HIDING), None),
    case("escapes in a reason", described("reason", value=ESCAPES), LIMITS, NOTICE),
    case(
        "hidden characters in a reason",
        described("reason", value=HIDING),
        families.VALUE,
        NOTICE,
    ),
    case("formula as a title", described("dataset", "title", value="=cmd|'/C calc'!A0"), None),
    case("script in the title", described("dataset", "title", value="<script>x</script>"), None),
    # Descriptions.
    case("no statement", described("card", value={}), families.VALUE),
    case("no mechanism", described("mechanism", value={}), families.VALUE),
    case("deep JSON", description("[" * 4_000_000), DESCRIPTOR),
    case("deep manifest", description('{"dp":' * 100 + '{"format": 1}' + "}" * 100), None),
    case("long number", description('{"dp": {"format": ' + "9" * 5_000_000 + "}}"), DESCRIPTOR),
    case(
        "many objects",
        description('{"dp": {"format": 1, "x": [' + "{}," * 2_000_000 + "{}]}}"),
        DESCRIPTOR,
    ),
    case(
        "endless description",
        sparse("datapackage.json", 1 << 40),
        families.SEAL,
        sealed=False,
    ),
    case("columns without end", described("columns", value=[{}] * 200_000), families.KEY),
    case("levels without end", many_columns, families.VALUE),
    case("false number of columns", described("columns", 0, "name", value="other"), DIFFER),
    # Matrices.
    case("pickled matrix", pickled, MATRIX),
    case("npy of 8 TB", content("second_moment.npy", npy("(1000000, 1000000)")), MATRIX),
    case("npy of false shape", content("second_moment.npy", npy("(3, 4000000)")), MATRIX),
    case(
        "long npy header",
        content("second_moment.npy", b"\x93NUMPY\x02\x00\xff\xff\xff\x7f(((("),
        MATRIX,
    ),
    case("sparse npy", sparse("second_moment.npy", 1 << 34), families.SEAL, sealed=False),
    case("Parquet of a billion rows", content("second_moment.parquet", many_rows), DIFFER),
    case(
        "Parquet page of 1.5 GB", content("second_moment.parquet", lambda: zeros(3 << 29)), DIFFER
    ),
    case(
        "false number of rows",
        content("second_moment.parquet", lambda: long_matrix(constant("value", 0.0, 1 << 28), 6)),
        DIFFER,
    ),
    case("CSV without end", content("second_moment.csv", b"column," + b"a" * 30_000_000), DIFFER),
    # Rows, tables and graphs.
    case("a billion published rows", content("rows.parquet", many_rows), families.CONTENT, ROWS),
    case(
        "long texts by prefixes",
        content("edges.parquet", long_texts),
        families.CONTENT,
        ESTIMATE,
    ),
    case("XML entities", entities, families.CONTENT, ESTIMATE),
    case("external XML entity", external_entity, families.CONTENT, ESTIMATE),
    case("table with a path", described("tables", value=["../../x"]), families.VALUE, ESTIMATE),
    # Files.
    case(
        "paths in the list",
        signed_sums(b"0" * 64 + b"  ../../../x\n"),
        families.SEAL,
        sealed=False,
    ),
    case(
        "a million names",
        signed_sums(b"".join(b"0" * 64 + b"  %08d\n" % k for k in range(1_000_000))),
        families.SEAL,
        sealed=False,
    ),
    case(
        "link",
        replaced("CARD.md", lambda path: path.symlink_to("/etc/passwd")),
        families.SEAL,
        sealed=False,
    ),
    case("pipe", replaced("CARD.md", os.mkfifo), families.SEAL, sealed=False),
    case("pipe as the list", replaced(SUMS, os.mkfifo), families.SEAL, sealed=False),
    case(
        "device as the list",
        replaced(SUMS, lambda path: path.symlink_to("/dev/zero")),
        families.SEAL,
        sealed=False,
    ),
    case("endless signature", sparse(SIGNATURE, 1 << 40), families.SEAL, sealed=False),
]
