"""The order in which people expect names: lab_2 before lab_10."""

from __future__ import annotations

import re

Natural = tuple[list[tuple[int, str]], str]


def natural(name: str) -> Natural:
    """A key that sorts lab_2 before lab_10."""
    parts = [part.lstrip("0") for part in re.split(r"([0-9]+)", name)]
    return [(len(part) if k % 2 else 0, part) for k, part in enumerate(parts)], name
