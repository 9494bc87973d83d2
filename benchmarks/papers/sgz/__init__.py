"""Su, Guo and Zhang (2020): differentially private precision matrix estimation."""

from __future__ import annotations

from benchmarks.papers.experiment import Paper
from benchmarks.papers.sgz import ionosphere, lasso_losses, models, ridge_losses, sachs, steps
from benchmarks.papers.sgz.sound_tasks import TASKS
from benchmarks.papers.sound import experiment

PAPER = Paper(
    title="[SGZ] Su, Guo, Zhang (2020): differentially private precision matrix estimation",
    about=(
        "Independent Gaussian noise on the upper triangle of X^T X / n, then the ridge (Algorithm "
        "1) or the graphical lasso by ADMM (Algorithm 2). As published, rows are divided by the "
        "largest length in the table and penalties come from cross-validation of private rows: no "
        "guarantee covers either, for any noise. At an exact guarantee, where precision "
        "matrices are scored, the paper's penalty is the best in hindsight, which requires "
        "the truth; Gramercy's is chosen from the release."
    ),
    experiments={
        "table-1": ridge_losses.EXPERIMENT,
        "table-2": lasso_losses.EXPERIMENT,
        "steps": steps.EXPERIMENT,
        "figure-1": models.EXPERIMENT,
        "figure-2": ionosphere.EXPERIMENT,
        "figure-3": sachs.CURVES,
        "figure-4": sachs.GRAPHS,
        **{name: experiment(task) for name, task in TASKS.items()},
    },
)
