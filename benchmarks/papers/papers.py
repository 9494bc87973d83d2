"""The papers, by their keys."""

from __future__ import annotations

from benchmarks.papers.claims import CLAIMS
from benchmarks.papers.experiment import Paper
from benchmarks.papers.sgz import PAPER as SGZ

PAPERS: dict[str, Paper] = {"claims": CLAIMS, "sgz": SGZ}
