"""Graph structure learning with privacy guarantees for open graph data: its experiments."""

from __future__ import annotations

from benchmarks.papers.experiment import Paper
from benchmarks.papers.gpp import exact, real, recovered, synthetic

PAPER = Paper(
    title="[GPP] (2025): graph structure learning with privacy guarantees, open graph data",
    about=(
        "Noise on every cell of the rows, which are then published; the graphical lasso of their "
        "second moment less the noise's variance. The numbers in the paper's tables are lost in "
        "its text, so its sentences are put to the test, and numbers are held against an earlier "
        "measurement of the project's own. Some margins of the verdicts (two standard errors, "
        "which noise levels count) were set after a first look."
    ),
    experiments={
        **synthetic.EXPERIMENTS,
        **real.EXPERIMENTS,
        **recovered.EXPERIMENTS,
        **exact.EXPERIMENTS,
    },
)
