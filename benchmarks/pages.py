"""Markdown and figures of the results pages."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure

_CODE = re.compile(r"(`[^`]*`|\]\([^)]*\))")  # code spans and link targets
_LETTERS = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu": "μ", "sqrt2": "√2", "X^T X": "XᵀX"}
_LETTER = re.compile(r"\b(" + "|".join(re.escape(name) for name in _LETTERS) + r")\b")
_VALUE = re.compile(r"\b(epsilon|delta) (?=\d)")
_POWER = re.compile(r"\b(\d+(?:\.\d+)?)e([+-]\d+)\b")
_SIZE = re.compile(r"(?<=\d) x (?=\d)|(?<=rows) x (?=columns)")
_PERCENT = re.compile(r"(?<=\d)%")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def table(head: Iterable[str], body: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield the lines of a Markdown table, followed by an empty line."""
    titles = list(head)
    yield "| " + " | ".join(titles) + " |"
    yield "|" + "---|" * len(titles)
    yield from ("| " + " | ".join(line) + " |" for line in body)
    yield ""


def write_page(path: Path, lines: Iterable[str]) -> None:
    """Write a page."""
    path.write_text(page_text(lines), encoding="utf-8")


def page_text(lines: Iterable[str]) -> str:
    """Join the lines to a page, with mathematical symbols instead of their names."""
    return symbols("\n".join(lines)).rstrip() + "\n"


def symbols(page: str) -> str:
    """Write ε for epsilon, 10⁻⁶ for 1e-06 and × for x, except in code and link targets."""
    parts = _CODE.split(page)
    return "".join(part if index % 2 else _symbols(part) for index, part in enumerate(parts))


def _symbols(prose: str) -> str:
    prose = _PERCENT.sub(" %", _SIZE.sub(" × ", prose))
    prose = _VALUE.sub(r"\1 = ", prose)
    prose = _LETTER.sub(lambda match: _LETTERS[match[0]], prose)
    return _POWER.sub(lambda match: _power(match[1], int(match[2])), prose)


def _power(factor: str, exponent: int) -> str:
    power = f"10{str(exponent).translate(_RAISED)}"
    return power if factor == "1" else f"{factor} × {power}"


@contextmanager
def figure(path: Path, width: float, height: float, salt: str = "") -> Iterator[Figure]:
    """A figure of so many inches, saved as SVG with texts; the same bytes for the same figure."""
    salt = salt or path.stem
    with mpl.rc_context({"svg.hashsalt": salt, "svg.fonttype": "none", "font.size": 9}):
        drawn = Figure(figsize=(width, height), layout="constrained")
        yield drawn
        drawn.savefig(path, format="svg", metadata={"Date": None})
