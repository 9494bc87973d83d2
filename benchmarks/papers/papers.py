"""The papers, by their keys."""

from __future__ import annotations

from benchmarks.papers.claims import CLAIMS
from benchmarks.papers.experiment import Paper
from benchmarks.papers.gpp import PAPER as GPP
from benchmarks.papers.lw import PAPER as LW
from benchmarks.papers.sgz import PAPER as SGZ
from benchmarks.papers.whx import PAPER as WHX
from benchmarks.papers.wx import PAPER as WX

PAPERS: dict[str, Paper] = {
    "sgz": SGZ,
    "wx": WX,
    "lw": LW,
    "whx": WHX,
    "gpp": GPP,
    "claims": CLAIMS,
}
