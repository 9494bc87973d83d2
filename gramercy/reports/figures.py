"""Figures of reports, from public facts; one function per figure."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from gramercy.common.plotting import ACCENT, FAINT, INK, WARM, figure
from gramercy.common.prefix_sums import PrefixSums
from gramercy.estimators.noise.spectrum import Spectrum
from gramercy.reports.directions import Directions
from gramercy.reports.steps import delays
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.steps import StepSpan

Array = NDArray[np.float64]


def attacker(guarantee: GuaranteeFacts) -> Markup:
    """The best attacker's true positive rate against the false positive rate."""
    return _attacker(guarantee.mu, guarantee.delta0, guarantee.pure_epsilon)


@lru_cache(maxsize=32)  # many releases have the same guarantee
def _attacker(mu: float, delta0: float, pure_epsilon: float | None) -> Markup:
    false_rates = np.concatenate([np.logspace(-5, -2, 100), np.linspace(0.01, 1, 200)])
    true_rates = _true_positive_rate(mu, delta0, pure_epsilon, false_rates)
    title = "True against false positive rate of the best attacker, with blind guessing."
    with figure("attacker", title, 4.4, 3.6) as drawing:
        axes = drawing.axes
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle="--")
        area: Any = {"color": ACCENT, "alpha": 0.15, "linewidth": 0}
        axes.fill_between(false_rates, false_rates, true_rates, **area)
        axes.plot(false_rates, true_rates, color=ACCENT, linewidth=2)
        line = {"arrowstyle": "-", "color": FAINT, "linewidth": 0.8}
        top = (0.3, float(_true_positive_rate(mu, delta0, pure_epsilon, np.array([0.3]))[0]))
        axes.annotate("best attacker", top, (0.03, 0.93), color=INK, arrowprops=line)
        axes.annotate("blind guessing", (0.6, 0.6), (0.62, 0.3), color=INK, arrowprops=line)
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set(xlabel="false positive rate", ylabel="true positive rate")
        axes.set_aspect("equal")
    return drawing.svg


def _true_positive_rate(
    mu: float, delta0: float, pure_epsilon: float | None, false_rates: Array
) -> Array:
    rates: Array = np.minimum(1.0, ndtr(ndtri(false_rates) + mu) + delta0)
    if pure_epsilon is None:
        return rates
    ratio = math.exp(min(pure_epsilon, 700.0))
    return np.minimum(rates, np.minimum(ratio * false_rates, 1 - (1 - false_rates) / ratio))


@lru_cache(maxsize=8)  # all steps of a series have the same one
def changed_rows(steps: int, every: StepSpan) -> Markup:
    """The share of a row of the first step in each sum of a series, if it is late or deleted."""
    sums, step = PrefixSums(steps), np.arange(1, steps + 1)
    title = "Share of a row in the sum so far, after each step: added late, and deleted."
    with figure("corrections", title, 6.4, 3.2) as drawing:
        axes = drawing.axes
        for delay in delays(steps, every):
            share = sums.shares(1, 1 + delay)
            line: Any = {"drawstyle": "steps-post", "linewidth": 1.8}
            after, since = f"{delay} {every}{'s' * (delay > 1)}", slice(delay, None)
            axes.plot(step[since], share[since], color=ACCENT, **line)
            axes.plot(step[since], 1 - share[since], color=WARM, linestyle="--", **line)
            for text, value in (("added", share[-1]), ("deleted", 1 - share[-1])):
                mark: Any = {"textcoords": "offset points", "va": "center", "color": INK}
                axes.annotate(f"{text} after {after}", (steps, value), (5, 0), **mark)
        axes.set(xlim=(1, steps), ylim=(0, 1), ylabel="share of the row")
        axes.set_xlabel(f"{every} of the series")
        axes.grid(axis="y", color=FAINT, alpha=0.25, linewidth=0.6)
    return drawing.svg


def noise_by_direction(found: Directions) -> Markup:
    """Variance of the rows by principal direction, and its noise with a metric and without."""
    from matplotlib.ticker import MaxNLocator

    rank = np.arange(1, found.variance.size + 1)
    title = "Variance of the rows in each direction, and the noise on it."
    lowest = min(float(found.noise.min()), found.plain)
    with figure("directions", title, 4.8, 3.4) as drawing:
        axes = drawing.axes
        size = 4 if rank.size <= 100 else 2
        shown: Any = {"markersize": size, "linestyle": "none", "color": ACCENT}
        dashed: Any = {"color": FAINT, "linewidth": 1.4, "linestyle": "--"}
        axes.axhline(found.plain, label="noise without a metric", **dashed)
        axes.plot(rank, found.noise, color=WARM, linewidth=2, label="noise, as released")
        clear = found.variance > lowest / 3
        axes.plot(rank[clear], found.variance[clear], "o", label="variance of the rows", **shown)
        axes.set(xlabel="direction, by its variance", ylabel="squared scales")
        axes.set_yscale("log")
        axes.minorticks_off()
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.legend(frameon=False)
    return drawing.svg


def eigenvalues(spectrum: Spectrum, repair: str) -> Markup:
    """Eigenvalues as released, after repair, and of pure noise."""
    from matplotlib.ticker import MaxNLocator

    rank = np.arange(1, spectrum.released.size + 1)
    title = "Eigenvalues of the released matrix and of pure noise."
    with figure("spectrum", title, 6.4, 3.2) as drawing:
        axes = drawing.axes
        axes.axhspan(spectrum.lower, spectrum.upper, color=FAINT, alpha=0.15, linewidth=0)
        axes.plot(rank, spectrum.noise, color=FAINT, linewidth=1.2, label="pure noise")
        style: Any = {"markersize": 4 if rank.size <= 100 else 2, "linestyle": "none"}
        axes.plot(rank, spectrum.repaired, "o", color=ACCENT, label=repair, **style)
        hollow: Any = {"markerfacecolor": "none", "markeredgecolor": WARM, "color": WARM}
        axes.plot(rank, spectrum.released, "o", label="as released", **style, **hollow)
        axes.axhline(0, color=FAINT, linewidth=0.6)
        axes.set(xlabel="rank", ylabel="eigenvalue")
        # A linear scale would hide small eigenvalues behind a dominant one.
        reach = max(spectrum.upper, -spectrum.lower)
        axes.set_yscale("symlog", linthresh=max(reach, 1e-300))
        largest = float(spectrum.released.max(initial=spectrum.upper))
        decades = [d for d in 10.0 ** np.arange(-12, 4) if 1.5 * reach < d <= largest]
        axes.minorticks_off()
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_yticks([spectrum.lower, 0.0, spectrum.upper, *decades])
        axes.set_ylim(1.3 * min(float(spectrum.released[-1]), spectrum.lower), 1.3 * largest)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.2g}".replace("-", "−"))
        axes.legend(frameon=False)
    return drawing.svg
