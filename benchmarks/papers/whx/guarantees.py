"""The exact guarantee of the noise in every column, at the shapes of the tables."""

from __future__ import annotations

import math
from collections.abc import Iterator

from benchmarks.arrays import Rng
from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Verdict, grid, short
from benchmarks.papers.whx.noise import PENALTY, delta_of
from benchmarks.papers.whx.published import COLUMNS, EPSILONS, SHAPES
from benchmarks.papers.whx.published import TITLES as WITH_NOISE
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import GaussianIid
from gramercy.mechanisms.laplace import Laplace
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.wishart import Wishart
from gramercy.schemas.neighbours import Neighbours

TITLES = WITH_NOISE | {"output": "1: output perturbation"}
PURE = ("wishart", "output", "laplace")
ROUND = 1.001


def experiment() -> Experiment:
    """Build the experiment of all columns, without random draws."""
    settings = grid(column=COLUMNS, epsilon=EPSILONS)
    return Experiment(
        title="Tables 1 and 2: exact guarantees",
        about=(
            "The exact guarantee of every noise in the tables at its shape, replace-one, rows in "
            "the unit ball, delta = 1/n. Table 1 claims epsilon without delta: where the exact "
            "epsilon does not exist, the delta is that at the claimed epsilon. Output "
            "perturbation as published counts as no protection at all."
        ),
        settings=settings,
        repetitions=1,
        measure=measure,
        page=_page,
        verdicts=_verdicts,
        quick=settings[:3],
    )


def guarantee(method: str, n: int, p: int, epsilon: float) -> Guarantee:
    """The exact guarantee of the noise as published."""
    delta = delta_of(n)
    if method == "laplace":
        return Laplace.published(
            p=p, n=n, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon
        ).guarantee
    if method == "wishart":
        return Wishart.published(
            p=p, n=n, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon
        ).guarantee
    if method == "output":
        return Output.published(
            p=p, n=n, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, penalty=PENALTY
        ).guarantee
    if method == "gaussian":
        return GaussianIid.published(
            p=p, n=n, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, delta=delta, paper="WX"
        ).guarantee
    return Wishart.published(
        p=p, n=n, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, delta=delta
    ).guarantee


def measure(_: Rng, *, column: str, epsilon: float) -> Figures:
    """Compute the exact epsilon at the claimed delta, and the delta at the claimed epsilon."""
    n, p = SHAPES[column]
    figures: Figures = {}
    for method in TITLES:
        known = guarantee(method, n, p, epsilon)
        figures[f"{method} epsilon"] = known.pure if method in PURE else known.epsilon(delta_of(n))
        figures[f"{method} delta"] = known.delta(epsilon)
    return figures


def _page(measured: Measured) -> Iterator[str]:
    yield from table(
        ("column", "n x p", "claimed", *TITLES.values()),
        (
            (
                column,
                "{} x {}".format(*SHAPES[column]),
                f"{epsilon:g}",
                *(_guarantee_text(measured, method, column, epsilon) for method in TITLES),
            )
            for column, epsilon in _known(measured)
        ),
    )


def _known(measured: Measured) -> list[tuple[str, float]]:
    return [
        (str(setting["column"]), float(setting["epsilon"]))
        for setting in map(dict, measured.settings)
    ]


def _guarantee_text(measured: Measured, method: str, column: str, epsilon: float) -> str:
    exact, delta = (
        measured.mean(f"{method} {what}", column=column, epsilon=epsilon).mean
        for what in ("epsilon", "delta")
    )
    return f"none; delta {short(delta)}" if math.isinf(exact) else short(exact)


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    cells = _known(measured)
    if not cells:
        return
    for method, title in TITLES.items():
        exact = [
            measured.mean(f"{method} epsilon", column=column, epsilon=epsilon).mean
            for column, epsilon in cells
        ]
        shares = [result / claimed for result, (_, claimed) in zip(exact, cells, strict=True)]
        yield Verdict(
            f"{title}: the noise of the tables has the guarantee that is claimed"
            + ("" if method in PURE else ", at delta = 1/n"),
            max(shares) <= ROUND,
            "no such guarantee exists" if math.isinf(max(shares))
            else f"exact epsilon {min(shares):.0%} to {max(shares):.0%} of the claimed",
        )  # fmt: skip
