"""The documents for tests: fenced code blocks, and a tolerant comparison of outputs."""

from __future__ import annotations

import doctest
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?(?!\w)")


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        yield Block(found[1], found[2], text[: found.start()].count("\n") + 1)


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


class ApproximateOutput(doctest.OutputChecker):
    """Compares outputs, ignoring white space and small differences of decimal fractions.

    Parameters
    ----------
    tolerance
        Largest difference between a decimal fraction and the expected one.
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        shown, seen = _NUMBER.findall(want), _NUMBER.findall(got)
        alike = [_NUMBER.sub("#", text).split() for text in (want, got)]
        return (
            len(shown) == len(seen)
            and alike[0] == alike[1]
            and all(
                abs(float(a) - float(b)) <= self.tolerance for a, b in zip(shown, seen, strict=True)
            )
        )
