"""The guarantees that the papers claim, compared with the exact guarantees of their noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

from scipy.stats import chi2

from benchmarks.arrays import Rng
from benchmarks.pages import table
from benchmarks.papers.experiment import Experiment, Figures, Measured, Paper, Verdict, grid, short
from benchmarks.papers.gpp.privacy import moved
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import GaussianIid
from gramercy.mechanisms.laplace import Laplace
from gramercy.mechanisms.local import Local
from gramercy.mechanisms.mechanism import Mechanism
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.wishart import Wishart
from gramercy.schemas.neighbours import Neighbours

Make = Callable[[], Guarantee]


@dataclass(frozen=True)
class Claim:
    """A guarantee that a paper claims for its noise.

    Parameters
    ----------
    paper, where
        Key of the paper, and the table, figure or theorem.
    noise
        Description of the noise.
    epsilon, delta
        Claimed values. Delta is zero for pure epsilon. Infinite if the paper claims nothing.
    exact
        Computes the exact replace-one guarantee of the noise, for rows in the unit ball unless
        `noise` states otherwise.
    """

    paper: str
    where: str
    noise: str
    epsilon: float
    delta: float
    exact: Make


ROUND = 1.001  # tolerance for rounding, before a claim counts as false


def _all_claims() -> Iterator[Claim]:
    yield from _sgz()
    yield from _wx()
    yield from _lw()
    yield from _whx()
    yield from _gpp()


def _sgz() -> Iterator[Claim]:
    for n, epsilon in product((100, 200, 400), (0.1, 0.3, 0.5, 0.8, 1.2, 2.0)):
        where = f"Tables 1 and 2, n = {n}"
        text = _gaussian("SGZ", 100, n, epsilon, 1 / n)
        yield Claim("sgz", where, "independent Gaussian, as the text has it", epsilon, 1 / n, text)
        if epsilon < 1:  # the noise that reproduces the printed numbers; see the paper's page
            printed = _gaussian("SGZ", 100, n, epsilon, 1 / n, math.sqrt(2))
            noise = "the same times sqrt2, as the printed numbers have it"
            yield Claim("sgz", where, noise, epsilon, 1 / n, printed)
    for epsilon, (where, n, p) in product(
        (1.0, 2.0), (("Figure 1", 2000, 20), ("Figure 2", 40, 34), ("Figures 3 and 4", 7466, 11))
    ):
        text = _gaussian("SGZ", p, n, epsilon, 0.001)
        yield Claim("sgz", where, "independent Gaussian, as the text has it", epsilon, 0.001, text)


def _wx() -> Iterator[Claim]:
    for n, epsilon in product((500, 2000, 10_000, 40_000), (0.1, 0.5, 1.0, 2.0)):
        yield Claim(
            "wx", f"Figures 1 and 2, n = {n:,}", "independent Gaussian, sensitivity 1",
            epsilon, 1 / n, _gaussian("WX", 100, n, epsilon, 1 / n),
        )  # fmt: skip
        yield Claim(
            "wx", f"Figures 3 and 4, n = {n:,}", "independent Gaussian on a row's report",
            epsilon, 1 / n, _local(n, epsilon, 1 / n),
        )  # fmt: skip


def _lw() -> Iterator[Claim]:
    settings = [
        ("Tables 1 and 2", 0.5, 1 / 400),
        *(("Tables 3 and 4", epsilon, 1 / 400) for epsilon in (0.1, 0.4, 0.6, 0.7)),
        *(("Tables 5 and 6", 0.5, delta) for delta in (1 / 50, 1 / 100, 1 / 200, 1 / 500)),
        ("Table 7", 0.5, 1 / 196),
    ]
    for where, epsilon, delta in settings:
        yield Claim(
            "lw", where, "independent Gaussian", epsilon, delta,
            _gaussian("LW", 100, 200, epsilon, delta),
        )  # fmt: skip
        yield Claim(
            "lw", where, "independent Gaussian on a row's report", epsilon, delta,
            _local(200, epsilon, delta),
        )  # fmt: skip
    for p in (50, 100, 200):
        yield Claim(
            "lw", f"Table 1, p = {p}", "the same noise, and the rows as they are: the median one",
            0.5, 1 / 400, _long_row(p, 200, 0.5, 1 / 400),
        )  # fmt: skip


def _whx() -> Iterator[Claim]:
    """Claims of WHX, which defines neighbours by replacement but uses add-remove sensitivity."""
    p, n, delta = 20, 1000, 1e-5
    for epsilon in (0.5, 1.0, 1.5):
        of = {"p": p, "n": n, "neighbours": Neighbours.ADD_REMOVE, "epsilon": epsilon}
        replaced = {**of, "neighbours": Neighbours.REPLACE_ONE}
        yield Claim("whx", "Table 1", f"Laplace, p = {p}", epsilon, 0.0, _exact(Laplace, replaced))
        for which, known in (("", replaced), ("; a row present or absent", of)):
            yield Claim(
                "whx", "Table 1", f"Wishart, p = {p}{which}", epsilon, 0.0, _exact(Wishart, known)
            )  # fmt: skip
        yield Claim(
            "whx", "Table 1", f"output perturbation, Wishart, p = {p}; counts as no protection",
            epsilon, 0.0, _exact(Output, {**replaced, "penalty": 0.1}),
        )  # fmt: skip
        for which, known in (("", replaced), ("; a row present or absent", of)):
            yield Claim(
                "whx", "Table 2", f"Wishart, p = {p}{which}", epsilon, delta,
                _exact(Wishart, {**known, "delta": delta}),
            )  # fmt: skip
            yield Claim(
                "whx", "Table 2", f"independent Gaussian, sensitivity 1, p = {p}{which}",
                epsilon, delta, _exact(GaussianIid, {**known, "delta": delta, "paper": "WX"}),
            )  # fmt: skip


def _gpp() -> Iterator[Claim]:
    # The paper's tables use 100 to 10 dB; a meaningful guarantee begins at the other levels.
    for decibels in (100, 80, 60, 40, 20, 10, 0, -10, -20, -28):
        for what, p in (
            ("a cell, by one deviation", 0.5),
            ("a typical row, 11 columns", 11),
            ("a typical row, 20 columns", 20),
            ("a typical row, 117 columns", 117),
        ):
            yield Claim(
                "gpp", f"{decibels} dB", f"Gaussian on every cell; {what}", math.inf, 1e-5,
                _noisy_rows(p, decibels),
            )  # fmt: skip
    # Delta at this epsilon if the discrete Gaussian were (1 / sigma)-GDP.
    where = "Theorem 4.4, read as mu = Delta / sigma"
    for sigma in (0.5, 1.0, 2.0):
        for epsilon in (0.0, 1.0):
            yield Claim(
                "gpp", where, f"discrete Gaussian, sigma = {sigma:g}, a cell by one",
                epsilon, Guarantee(1 / sigma).delta(epsilon), _discrete(sigma),
            )  # fmt: skip


def _gaussian(paper: str, p: int, n: int, epsilon: float, delta: float, times: float = 1.0) -> Make:
    def exact() -> Guarantee:
        made = GaussianIid.published(
            p=p, n=n, neighbours=Neighbours.REPLACE_ONE, epsilon=epsilon, delta=delta, paper=paper
        )
        return Guarantee(made.guarantee.mu / times)

    return exact


def _local(n: int, epsilon: float, delta: float) -> Make:
    """Guarantee of one noisy report, which does not depend on the number of columns."""
    of = {"p": 2, "n": n, "neighbours": Neighbours.REPLACE_ONE, "epsilon": epsilon, "delta": delta}
    return _exact(Local, of)


def _long_row(p: int, n: int, epsilon: float, delta: float) -> Make:
    """Guarantee for a row of length r, the median: replacing a zero row moves the sum by r^2."""

    def exact() -> Guarantee:
        scale = math.sqrt(4 * math.log(1.25 / delta)) / epsilon
        return Guarantee(float(chi2.median(p)) / scale)

    return exact


def _exact(mechanism: type[Mechanism], of: dict[str, Any]) -> Make:
    return lambda: mechanism.published(**of).guarantee


def _noisy_rows(columns: float, decibels: float) -> Make:
    """Guarantee of noisy rows; independent rows with unit variances are about sqrt(2p) apart."""
    return lambda: Guarantee(math.sqrt(2 * columns) * 10 ** (decibels / 20))


def _discrete(sigma: float) -> Make:
    return lambda: moved(1, sigma, 1e-9)


ALL = {
    f"{each.paper}: {each.where}, {each.noise}, {each.epsilon:g}, {each.delta:g}": each
    for each in _all_claims()
}


def measure(_: Rng, *, claim: str) -> Figures:
    """Compute the exact epsilon at the claimed delta, and the delta at the claimed epsilon."""
    of = ALL[claim]
    result = of.exact()
    known = result.epsilon(of.delta) if of.delta > 0 else result.pure
    delta = result.delta(of.epsilon) if of.epsilon < math.inf else math.nan
    return {"mu": result.mu, "delta0": result.delta0, "epsilon": known, "delta": delta}


def _page(measured: Measured) -> Iterator[str]:
    for paper in dict.fromkeys(each.paper for each in ALL.values()):
        yield f"**[{paper.upper()}]**\n"
        mine = [key for key, each in ALL.items() if each.paper == paper and measured.has(claim=key)]
        yield from table(
            (
                "where",
                "noise",
                "claimed",
                "exact epsilon",
                "exact delta",
                "mu",
                "claim",
            ),
            (_line(measured, key) for key in mine),
        )


def _line(measured: Measured, key: str) -> tuple[str, ...]:
    of = ALL[key]
    said = "nothing" if math.isinf(of.epsilon) else f"({of.epsilon:g}, {of.delta:.3g})"
    result = {name: measured.mean(name, claim=key).mean for name in ("epsilon", "delta", "mu")}
    return (
        of.where,
        of.noise,
        said,
        _number(result["epsilon"]),
        _number(result["delta"]),
        "" if math.isinf(result["epsilon"]) else _number(result["mu"]),
        _verdict_text(of, result["epsilon"]),
    )


def _verdict_text(of: Claim, epsilon: float) -> str:
    if math.isinf(of.epsilon):
        return "no claim"
    if epsilon > of.epsilon * ROUND:
        return "**false**"
    return "holds" if epsilon > of.epsilon / 2 else "holds, with much more noise than needed"


def _number(value: float) -> str:
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "none"
    return f"{value:.3g}" if value < 99.5 else short(value)


def false_claims(measured: Measured) -> dict[str, tuple[int, int]]:
    """Count, by paper, the settings with a false claim and the settings with any claim."""
    counts: dict[str, tuple[int, int]] = {}
    for key, claim in ALL.items():
        if claim.epsilon < math.inf and measured.has(claim=key):
            epsilon = measured.mean("epsilon", claim=key).mean
            false, settings = counts.get(claim.paper, (0, 0))
            counts[claim.paper] = (false + (epsilon > claim.epsilon * ROUND), settings + 1)
    return counts


def _verdicts(measured: Measured) -> Iterator[Verdict]:
    for paper, (false, settings) in false_claims(measured).items():
        yield Verdict(
            f"[{paper.upper()}] the noise has the claimed guarantee in every setting",
            not false,
            f"false in {false} of {settings}",
        )


CLAIMS = Paper(
    title="Published privacy claims against exact guarantees",
    about=(
        "The (epsilon, delta) that each paper claims for its noise, and the exact guarantee of "
        "that noise: replace-one, for rows in the unit ball, unless stated. Exact epsilon is at "
        "the claimed delta, exact delta at the claimed epsilon. Three steps of the papers are "
        "outside any guarantee: dividing by the largest norm in the table, centring by its mean, "
        "and choosing penalties and thresholds by cross-validation on private rows."
    ),
    experiments={
        "table": Experiment(
            title="All mechanisms and settings",
            about="Computed by `gramercy.mechanisms`, as a release is charged; no noise is drawn.",
            settings=grid(claim=tuple(ALL)),
            repetitions=1,
            measure=measure,
            page=_page,
            verdicts=_verdicts,
            quick=grid(claim=tuple(ALL)),
        )
    },
)
