"""Li and Wang: thresholding, compared with that of Wang and Xu."""

from __future__ import annotations

from benchmarks.papers import sound
from benchmarks.papers.experiment import Paper
from benchmarks.papers.lw import models, oracle, qda, tables
from benchmarks.papers.lw.models import ABOUT

PAPER = Paper(
    title=(
        "[LW] Li, Wang (2023): differentially private sparse covariance matrix estimation under "
        "lower-bounded moment assumption"
    ),
    about=ABOUT,
    experiments={
        "tables": tables.EXPERIMENT,
        "oracle": oracle.EXPERIMENT,
        "qda": qda.EXPERIMENT,
        **{f"sound-{name}": sound.experiment(task) for name, task in models.TASKS.items()},
    },
)
