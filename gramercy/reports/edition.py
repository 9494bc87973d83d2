"""The edition of the pages: a digest of the code that makes them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

_SOURCES = {".py", ".html", ".css"}


@cache
def edition() -> str:
    """Digest of the code that makes pages; `verify` recomputes pages of this edition only."""
    package = Path(__file__).parents[1]
    folders = (package / "estimators", package / "reports")
    files = sorted(p for folder in folders for p in folder.rglob("*") if p.suffix in _SOURCES)
    contents = (f"{p.relative_to(package)}\0".encode() + p.read_bytes() for p in files)
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:16]
