"""Figures of reports, from public facts; one function per figure."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from gramercy.common.notation import significant
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


_WIDE, _HIGH, _LEFT, _TOP, _BELOW = 460, 230, 52, 26, 38  # of the eigenvalues, and their margins
_MANY_RANKS, _MOST_TICKS = 100, 8


def eigenvalues(spectrum: Spectrum, repair: str) -> Markup:
    """Eigenvalues as released, after repair, and of pure noise; drawn by hand, for every release.

    The scale is linear within the noise and logarithmic outside: a linear one would hide small
    eigenvalues behind a dominant one.
    """
    released, p = spectrum.released, spectrum.released.size
    reach = max(spectrum.upper, -spectrum.lower)
    largest = float(released.max(initial=spectrum.upper))
    unit = reach or 1e-6 * largest or 1.0

    def symlog(values: Array) -> Array:
        size = np.abs(values) / unit
        scaled: Array = np.sign(values) * np.where(
            size > 1, 1 + np.log10(np.maximum(size, 1)), size
        )
        return scaled

    smallest = float(released.min(initial=spectrum.lower))
    ends = symlog(1.3 * np.array([smallest, largest]))
    bottom, across, radius = _HIGH - _BELOW, _WIDE - _LEFT - 8, 2.4 if p <= _MANY_RANKS else 1.2

    def y(values: Array) -> list[float]:
        share = (symlog(values) - ends[0]) / (ends[1] - ends[0] or 1.0)
        return [round(bottom - (bottom - _TOP) * each, 1) for each in share.tolist()]

    def x(ranks: Array) -> list[float]:
        return [round(_LEFT + across * (each - 0.5) / p, 1) for each in ranks.tolist()]

    rank = np.arange(1.0, p + 1)
    decades = [d for d in 10.0 ** np.arange(-12, 4) if 1.5 * unit < d <= largest]
    levels = np.array([spectrum.lower, 0.0, spectrum.upper, *decades])
    step = next(k for k in _integer_steps() if p / k <= _MOST_TICKS)
    ticks = np.arange(step, p + 1, step, dtype=float)
    circle = f"a{radius} {radius} 0 1 0 {2 * radius} 0a{radius} {radius} 0 1 0 {-2 * radius} 0"

    def places(values: Array) -> Iterator[tuple[float, float]]:
        return zip(x(rank), y(values), strict=True)

    def circles(values: Array) -> str:
        return "".join(f"M{at - radius:.1f} {height}{circle}" for at, height in places(values))

    hollow, filled = "fill: none; stroke: var(--warm)", "fill: var(--accent)"
    line = "fill: none; stroke: var(--faint); stroke-width: {}"
    upper, zero, lower = y(np.array([spectrum.upper, 0.0, spectrum.lower]))
    noise = " ".join(
        f"{at} {height}" for at, height in zip(x(rank), y(spectrum.noise), strict=True)
    )
    right, axis = _WIDE - 8, line.format(0.8)
    legend = [
        (0, f"M{_LEFT} 11h16", line.format(1.2), "pure noise"),
        (95, f"M{_LEFT + 103 - radius} 11{circle}", filled, repair),
        (180, f"M{_LEFT + 188 - radius} 11{circle}", hollow, "as released"),
    ]
    shapes = [
        (f"M{_LEFT} {upper}H{right}V{lower}H{_LEFT}z", "fill: var(--faint); fill-opacity: .15"),
        (f"M{_LEFT} {zero}H{right}", line.format(0.6)),
        (f"M{noise}", line.format(1.2)),
        (circles(spectrum.repaired), filled),
        (circles(released), hollow),
        (f"M{_LEFT} {_TOP}V{bottom}H{right}", axis),
        ("".join(f"M{_LEFT - 3.5} {height}h3.5" for height in y(levels)), axis),
        ("".join(f"M{at} {bottom}v3.5" for at in x(ticks)), axis),
        *((path, style) for _, path, style, _ in legend),
    ]
    texts = [
        *(
            (_LEFT - 6, at + 3, "end", significant(each, 2))
            for each, at in zip(levels, y(levels), strict=True)
        ),
        *(
            (at, bottom + 13, "middle", f"{each:.0f}")
            for each, at in zip(ticks, x(ticks), strict=True)
        ),
        *((_LEFT + at + 20, 14, "start", words) for at, _, _, words in legend),
        ((_LEFT + right) / 2, bottom + 27, "middle", "rank"),
    ]
    return Markup(
        '<svg viewBox="0 0 {} {}" role="img" aria-label="{}" style="max-width: 44.8rem"'
        ' font-size="9" fill="var(--ink)">{}{}'
        '<text transform="translate(9 {}) rotate(-90)" text-anchor="middle">eigenvalue</text></svg>'
    ).format(
        _WIDE,
        _HIGH,
        "Eigenvalues of the released matrix and of pure noise.",
        Markup().join(Markup('<path d="{}" style="{}"/>').format(*each) for each in shapes),
        Markup().join(
            Markup('<text x="{}" y="{:.1f}" text-anchor="{}">{}</text>').format(*each)
            for each in texts
        ),
        (_TOP + bottom) / 2,
    )


def _integer_steps() -> Iterator[int]:
    """1, 2, 5, 10, 20, 50 and so on."""
    return (digit * 10**power for power in itertools.count() for digit in (1, 2, 5))
