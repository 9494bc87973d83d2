"""A test whether one penalty reproduces all printed rows, over a grid of penalties."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from benchmarks.arrays import Array, Rng
from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.papers.scores import relative
from benchmarks.papers.whx import noise
from benchmarks.papers.whx.iterate import iterate
from benchmarks.papers.whx.published import METHODS, TITLES, printed, rows_of
from gramercy.estimators.solvers.glasso import Path, graphical_lasso_path
from gramercy.schemas.errors import RequestError

GRID = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
EPSILONS = (0.5, 1.5)
BAND = 1.5  # tolerance; the grid is coarse


def experiment(title: str, columns: tuple[str, ...], folder: str | None = None) -> Experiment:
    """Build the experiment for all rows of the given columns."""
    settings = grid(column=columns)
    return Experiment(
        title=f"One penalty for all rows: {title}",
        about=(
            "Every row of the tables at a grid of penalties, otherwise as above: the error of the "
            "iterate (in Wishart's rows 1 - error, since they are all about 1), and the share of "
            "problems that have a minimiser. **Bold** where it is within a factor of "
            f"{BAND:g} of what is printed."
        ),
        settings=settings,
        repetitions=5,
        measure=measure,
        page=_page,
        verdicts=partial(_verdicts, title=title),
        quick=settings[-1:],
        table=folder,
    )


def measure(rng: Rng, *, column: str) -> Figures:
    """Measure one data set with one draw of every noise, at all penalties."""
    rows = rows_of(column, rng)
    n, p = rows.shape
    moment = rows.T @ rows / n
    wanted = [each.precision for each in _path(moment)]
    figures: Figures = {}
    for epsilon in EPSILONS:
        for name, draw in noise.PUBLISHED.items():
            noisy = moment + draw(rng, n, p, epsilon)
            result = [
                relative(iterate(noisy, penalty), T)
                for penalty, T in zip(GRID, wanted, strict=True)
            ]
            figures[f"{name} at {epsilon:g}"] = result
            have = len(_path(noisy))  # the path ends at the first penalty without a minimiser
            figures[f"{name} minimiser at {epsilon:g}"] = [k < have for k in range(len(GRID))]
    return figures


def _path(matrix: Array) -> Path:
    try:
        return graphical_lasso_path(
            matrix, GRID, penalize_diagonal=True, tol=1e-8, conditions=False
        )
    except RequestError:
        return Path()


def compared_value(name: str, error: float) -> float:
    """Value to compare: the error, or 1 - error for the Wishart rows, whose errors are near 1."""
    return 1 - error if name.startswith("wishart") else error


def reproduces(name: str, ours: float, theirs: float) -> bool:
    """Whether both compared values are positive, and within the band of each other."""
    one, other = compared_value(name, ours), compared_value(name, theirs)
    return one > 0 and other > 0 and 1 / BAND <= one / other <= BAND


def fitting(measured: Measured, column: str, name: str) -> list[float]:
    """Return the penalties at which a row has the printed errors at every epsilon."""
    errors = {
        epsilon: measured.values(f"{name} at {epsilon:g}", column=column).mean(axis=0)
        for epsilon in EPSILONS
    }
    return [
        penalty
        for k, penalty in enumerate(GRID)
        if all(
            reproduces(name, float(errors[epsilon][k]), printed(name, epsilon, column))
            for epsilon in EPSILONS
        )
    ]


def _columns(measured: Measured) -> list[str]:
    return [str(dict(setting)["column"]) for setting in measured.settings]


def _page(measured: Measured) -> Iterator[str]:
    yield from table(
        ("column", "epsilon", "row", "printed", *(f"{penalty:g}" for penalty in GRID)),
        (
            (
                column,
                f"{epsilon:g}",
                TITLES[name] + (", 1 - error" if name.startswith("wishart") else ""),
                short(compared_value(name, printed(name, epsilon, column))),
                *_cells(measured, column, name, epsilon),
            )
            for column in _columns(measured)
            for epsilon in EPSILONS
            for name in METHODS
        ),
    )


def _cells(measured: Measured, column: str, name: str, epsilon: float) -> Iterator[str]:
    errors, have = (
        measured.values(f"{name}{key} at {epsilon:g}", column=column).mean(axis=0)
        for key in ("", " minimiser")
    )
    for error, share in zip(errors, have, strict=True):
        number = short(compared_value(name, float(error)))
        fits = reproduces(name, float(error), printed(name, epsilon, column))
        yield f"{f'**{number}**' if fits else number} [{share:.0%}]"


def _verdicts(measured: Measured, *, title: str) -> Iterator[Verdict]:
    columns = _columns(measured)
    if not columns:
        return
    fits = {
        column: {name: fitting(measured, column, name) for name in METHODS} for column in columns
    }
    common = [set(GRID).intersection(*map(set, result.values())) for result in fits.values()]
    yield Verdict(
        f"{title}: there is a penalty at which all four rows are as printed, within {BAND:g}",
        all(common),
        "; ".join(
            f"{column}: "
            + ", ".join(f"{TITLES[name]} {_penalty_list(where)}" for name, where in result.items())
            for column, result in fits.items()
        ),
    )
    known = [error for column in columns for error in _of_minimisers(measured, column)]
    least = min(printed("laplace", epsilon, column) for column in columns for epsilon in EPSILONS)
    yield Verdict(
        f"{title}: at some penalty Laplace noise leaves a minimiser, with an error as large as is "
        f"printed, {short(least)} or more",
        max(known, default=0.0) >= least,
        f"the largest error of a problem that has one is {short(max(known))}"
        if known
        else f"no problem has one, at penalties up to {max(GRID):g}",
    )


def _of_minimisers(measured: Measured, column: str) -> Iterator[float]:
    """Yield the errors of the Laplace row for problems with a minimiser."""
    for epsilon in EPSILONS:
        errors, have = (
            measured.values(f"laplace{key} at {epsilon:g}", column=column)
            for key in ("", " minimiser")
        )
        yield from errors[have > 0]


def _penalty_list(where: list[float]) -> str:
    return " and ".join(f"{penalty:g}" for penalty in where) or "nowhere"
