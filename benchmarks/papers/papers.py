"""The papers, by their keys."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.papers import rates
from benchmarks.papers.claims import CLAIMS
from benchmarks.papers.experiment import Paper
from benchmarks.papers.gpp import PAPER as GPP
from benchmarks.papers.lw import PAPER as LW
from benchmarks.papers.sgz import PAPER as SGZ
from benchmarks.papers.theorems import THEOREMS
from benchmarks.papers.whx import PAPER as WHX
from benchmarks.papers.wx import PAPER as WX

_PUBLISHED = {"sgz": SGZ, "wx": WX, "lw": LW, "whx": WHX, "gpp": GPP}
PAPERS: dict[str, Paper] = {
    **{
        key: replace(
            paper, experiments={**paper.experiments, "rates": rates.experiment(THEOREMS[key])}
        )
        for key, paper in _PUBLISHED.items()
    },
    "claims": CLAIMS,
}
