"""The papers, by their keys."""

from __future__ import annotations

from benchmarks.papers.claims import CLAIMS
from benchmarks.papers.experiment import Paper
from benchmarks.papers.gpp import PAPER as GPP

PAPERS: dict[str, Paper] = {"claims": CLAIMS, "gpp": GPP}
