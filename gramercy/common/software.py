"""A digest of the program, which shows whether it would write today what it wrote before."""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib.resources import files

_WRITES = (".py", ".html", ".css", ".js")  # kinds of files that decide what is written


@cache
def source_digest() -> str:
    """SHA-256 of the program's files by their names, in hexadecimal."""
    found, root = {}, str(files("gramercy"))
    for folder, _, names in os.walk(root, followlinks=True):
        for name in names:
            if name.endswith(_WRITES):
                path = os.path.join(folder, name)
                with open(path, "rb") as stream:
                    found[os.path.relpath(path, root)] = hashlib.file_digest(stream, "sha256")
    digest = hashlib.sha256()
    for path, each in sorted(found.items()):
        digest.update(f"{each.hexdigest()}  {path}\n".encode())
    return digest.hexdigest()
