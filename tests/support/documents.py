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
    for match in _FENCE.finditer(text):
        yield Block(match[1], match[2], text[: match.start()].count("\n") + 1)


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


class ApproximateOutput(doctest.OutputChecker):
    """Compares outputs, ignoring white space and small differences of decimal fractions.

    Parameters
    ----------
    tolerance
        Largest difference between a decimal fraction and the expected one; relative above 1.
    """

    def __init__(self, tolerance: float) -> None:
        self.tolerance = tolerance

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if super().check_output(want, got, optionflags):
            return True
        expected_numbers, actual_numbers = _NUMBER.findall(want), _NUMBER.findall(got)
        skeletons = [_NUMBER.sub("#", text).split() for text in (want, got)]
        return (
            len(expected_numbers) == len(actual_numbers)
            and skeletons[0] == skeletons[1]
            and all(
                abs(float(a) - float(b)) <= self.tolerance * max(1.0, abs(float(a)))
                for a, b in zip(expected_numbers, actual_numbers, strict=True)
            )
        )
