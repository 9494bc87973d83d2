"""[WHX] Wang, Huai and Xu (2018)."""

from __future__ import annotations

from benchmarks.papers.experiment import Paper
from benchmarks.papers.whx import (
    guarantees,
    output,
    penalties,
    precision,
    pure,
    readings,
    sulq,
    tables,
)
from benchmarks.papers.whx.published import COLUMNS, TABLES

PAPER = Paper(
    title="[WHX] Wang, Huai and Xu (2018): sparse inverse covariance",
    about=(
        "Noise on the second moment or on the estimate, then the graphical lasso. Only slides of "
        "the paper are available, with two tables and few details of how they were made."
    ),
    experiments={
        "readings": readings.experiment(),
        "synthetic": tables.experiment("synthetic", COLUMNS[:3]),
        "colon": tables.experiment("Colon", ("Colon",), TABLES["Colon"]),
        "parkinsons": tables.experiment("Parkinson's", ("Parkinson's",), TABLES["Parkinson's"]),
        "penalties": penalties.experiment("synthetic", COLUMNS[:3]),
        "penalties-parkinsons": penalties.experiment(
            "Parkinson's", ("Parkinson's",), TABLES["Parkinson's"]
        ),
        "sulq": sulq.experiment(),
        "guarantees": guarantees.experiment(),
        "sound-synthetic": precision.synthetic(),
        "sound-colon": precision.real("Colon"),
        "sound-parkinsons": precision.real("Parkinson's"),
        "sound-pure": pure.experiment(),
        "sound-output": output.experiment(),
    },
)
