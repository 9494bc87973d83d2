"""The papers, by their keys."""

from __future__ import annotations

from benchmarks.papers import whx
from benchmarks.papers.claims import CLAIMS
from benchmarks.papers.experiment import Paper

PAPERS: dict[str, Paper] = {"whx": whx.PAPER, "claims": CLAIMS}
