"""Section 4.2: discriminant analysis of a public table."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.arrays import Array, Rng
from benchmarks.pages import table
from benchmarks.papers import data, thresholding
from benchmarks.papers.classes import classified
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.papers.lw.published import COLUMNS, MISCLASSIFIED, SMALLER_CLASS, TEST_ROWS

Labels = NDArray[np.int64]
TABLE = "ionosphere"
SHARE = 1 / 5
EPSILON = 0.5
REPETITIONS = 20
RANK = 1e-9  # eigenvalues below this share of the largest count as zero


def features() -> tuple[Array, Labels]:
    """Return the columns that are not constant, and the class of every row, 0 or 1."""
    known = data.frame(TABLE).to_numpy(float)
    names = data.labels(TABLE).iloc[:, -1].to_numpy()
    classes: Labels = np.searchsorted(np.unique(names), names).astype(np.int64)
    return known[:, known.std(axis=0) > 0], classes


def split(classes: Labels, rng: Rng) -> NDArray[np.bool_]:
    """Choose the held-out rows, a fifth of each class."""
    held = np.zeros(classes.size, dtype=bool)
    for each in np.unique(classes):
        mine = np.flatnonzero(classes == each)
        held[rng.permutation(mine)[: round(SHARE * mine.size)]] = True
    return held


def t(x: Array, classes: Labels) -> Array:
    """Student's t statistic of every column between two classes, with the pooled variance."""
    one, other = x[classes == 0], x[classes == 1]
    squares = len(one) * one.var(axis=0) + len(other) * other.var(axis=0)
    error = np.sqrt(squares / (len(x) - 2) * (1 / len(one) + 1 / len(other)))
    result: Array = (one.mean(axis=0) - other.mean(axis=0)) / np.maximum(error, 1e-12)
    return result


def inverse(covariance: Array) -> Array:
    """Pseudo-inverse: clipped matrices are singular, and the paper does not name an inverse."""
    made: Array = np.linalg.pinv(covariance, rcond=RANK, hermitian=True).astype(np.float64)
    return made


def measure(rng: Rng, *, p: int) -> Figures:
    """Measure one split: five estimates of the covariance within classes, the rest exact."""
    x, classes = features()
    held = split(classes, rng)
    train, of = x[~held], classes[~held]
    kept = np.argsort(-np.abs(t(train, of)))[:p]
    train, test = train[:, kept], x[held][:, kept]
    n, delta = len(train), 1 / (2 * len(x))
    means = np.array([train[of == each].mean(axis=0) for each in (0, 1)])
    priors = np.array([(of == each).mean() for each in (0, 1)])
    within = train - means[of]
    pooled = within.T @ within / n

    def counted(covariance: Array) -> int:
        return int((classified(test, means, priors, inverse(covariance)) != classes[held]).sum())

    figures: Figures = {
        "tested": int(held.sum()),
        "smaller class": int(min(np.bincount(classes[held]))),
        "without": counted(pooled),
        "nothing": counted(np.zeros_like(pooled)),
    }
    for method in thresholding.METHODS:
        central = partial(thresholding.central, method, epsilon=EPSILON, delta=delta)
        reports = partial(thresholding.local, epsilon=EPSILON, delta=delta)
        for name, deviation in ((method, central), (f"{method}-local", reports)):
            noisy = pooled + thresholding.noise(p, deviation(n), rng)
            constant = thresholding.cross_validated(within, deviation, rng)
            made = thresholding.estimate(
                noisy, thresholding.threshold(constant, n, p, deviation(n))
            )
            figures[name] = counted(made)
            figures[f"{name} zero"] = not made.any()
    return figures


def _page(measured: Measured) -> Iterator[str]:
    known = [dict(setting)["p"] for setting in measured.settings]
    yield from table(
        ("p", "test rows", *(column.upper() for column in COLUMNS), "without privacy", "nothing"),
        (
            (
                str(p),
                short(measured.mean("tested", p=p).mean),
                *(str(measured.mean(name, p=p)) for name in (*COLUMNS, "without", "nothing")),
            )
            for p in known
        ),
    )
    yield (
        "How often the estimate is the zero matrix: "
        + "; ".join(
            f"p = {p}: "
            + ", ".join(f"{c.upper()} {measured.mean(f'{c} zero', p=p).mean:.0%}" for c in COLUMNS)
            for p in known
        )
        + ".\n"
    )
    yield (
        "Table 7 of the paper, on the gut microbiome, which is not public. A rule that always "
        "predicts "
        f"the larger class is wrong in {SMALLER_CLASS} of its {TEST_ROWS} test rows.\n"
    )
    yield from table(
        ("p", *(column.upper() for column in COLUMNS)),
        ((str(p), *(short(each) for each in line)) for p, line in MISCLASSIFIED.items()),
    )


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    settings = [dict(setting) for setting in measured.settings]
    for suffix, what in (("", "central"), ("-local", "local")):
        means = [
            [measured.mean(f"{method}{suffix}", **of).mean for method in thresholding.METHODS]
            for of in settings
        ]
        if means:
            yield Verdict(
                f"Discriminant analysis, {what}: Li and Wang's estimator misclassifies fewer rows "
                f"than Wang and Xu's ({TABLE}, cross-validated constants)",
                all(ours < theirs for ours, theirs in means),
                "; ".join(
                    f"p = {of['p']}: {short(ours)} against {short(theirs)}"
                    for of, (ours, theirs) in zip(settings, means, strict=True)
                ),
            )


def _draw(measured: Measured) -> Figure:
    canvas = Figure(figsize=(5.5, 3.4), layout="constrained")
    axes = canvas.subplots()
    names = ("without", *COLUMNS, "nothing")
    known = [dict(setting)["p"] for setting in measured.settings]
    for turn, p in enumerate(known):
        means = [measured.mean(name, p=p) for name in names]
        spread = [0 if np.isnan(mean.sd) else mean.sd for mean in means]
        at = np.arange(len(names)) + 0.4 * turn
        axes.bar(at, [mean.mean for mean in means], 0.38, yerr=spread, label=f"p = {p}")
    titles = ["no privacy", *(column.upper() for column in COLUMNS), "nothing"]
    axes.set_xticks(np.arange(len(names)) + 0.2, titles)
    axes.set_ylabel("rows misclassified")
    axes.legend(fontsize=8)
    return canvas


SETTINGS = grid(p=(25, 33))

EXPERIMENT = Experiment(
    title="Section 4.2, discriminant analysis",
    about=(
        f"The paper's data are not public: here {TABLE}, with its 33 columns that vary, or the 25 "
        "of the smallest two-sample t-test on the training rows. The protocol is the paper's: a "
        "fifth of each class is held out, one covariance is pooled over the classes, epsilon "
        f"{EPSILON:g}, delta 1/(2n), constants by ten-fold cross-validation, values as they are. "
        "Means, shares, the choice of columns and the constants are without noise, so this "
        "procedure is not private. "
        "Clipped matrices are singular, which the paper does not mention: the inverse here is the "
        "Moore-Penrose inverse. Nothing: the zero matrix, which assigns every row to the larger "
        "class. Average number of misclassified test rows."
    ),
    settings=SETTINGS,
    repetitions=REPETITIONS,
    measure=measure,
    page=_page,
    verdicts=_verdicts,
    draw=_draw,
    quick=SETTINGS,
    quick_repetitions=5,
    table=TABLE,
)
