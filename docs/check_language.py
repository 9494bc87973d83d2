"""Refuse words that hide the field's own terms: ``python docs/check_language.py [PATH...]``.

The list is in language.txt, next to this file. All text counts: names, comments, docstrings,
messages, pages and templates.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WORDS = Path(__file__).with_name("language.txt")
KINDS = {".py", ".md", ".html", ".yaml", ".toml", ".cfg"}


def rules() -> dict[re.Pattern[str], str]:
    """Expressions to avoid, and what to write instead."""
    lines = [line for line in WORDS.read_text().splitlines() if line and line[0] != "#"]
    pairs = (re.split(r"\s{2,}", line, maxsplit=1) for line in lines)
    return {re.compile(avoid): better for avoid, better in pairs}


def texts(places: list[str]) -> Iterator[Path]:
    """Files with text of the project's own."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *places]
    listed = subprocess.run(  # noqa: S603  the paths come after "--"
        command, cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        path = ROOT / name
        if path.suffix in KINDS and path.is_file() and not path.is_symlink():
            yield path


def main(places: list[str]) -> int:
    """Print each place where the list is broken; 1 if there is one."""
    avoided, found = rules(), 0
    for path in texts(places):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            spoken = line.replace("_", " ")
            for avoid, better in avoided.items():
                if hit := avoid.search(spoken):
                    found += 1
                    print(f"{path.relative_to(ROOT)}:{number}: '{hit[0]}': {better}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
