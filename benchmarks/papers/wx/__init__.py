"""Wang and Xu: thresholding, central and local."""

from __future__ import annotations

from benchmarks.papers import sound
from benchmarks.papers.experiment import Paper
from benchmarks.papers.wx import figures, models
from benchmarks.papers.wx.models import ABOUT

PAPER = Paper(
    title="[WX] Wang, Xu (2019): differentially private sparse covariance estimation",
    about=ABOUT,
    experiments={
        "central": figures.CENTRAL,
        "local": figures.LOCAL,
        "lengths": models.EXPERIMENT,
        **{f"sound-{name}": sound.experiment(task) for name, task in models.TASKS.items()},
    },
)
