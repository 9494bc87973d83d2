"""The page of a plan: what a release would be, before it is one. From public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from gramercy.reports.figures import attacker
from gramercy.reports.page import render
from gramercy.reports.svg import ACCENT, FAINT, INK, PAPER, WARM, figure
from gramercy.reports.words import Note, best_guess, protection, the_attack
from gramercy.schemas.budget_effect import Effect
from gramercy.schemas.contract import Neighbours, ProtectedUnit
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.manifest import ReleaseKind
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import AnyNormalisation, Unit

_SHOWN = 60  # columns of the table that are named
_REACH = 30  # times the error in question that the chart shows
_LEVELS = {"charged": "good", "free": "good", "refused": "warning"}
_HEADS = {
    "charged": "It fits the budget",
    "free": "It would cost nothing",
    "refused": "It would be refused",
}


@dataclass(frozen=True)
class BudgetFacts:
    """What a budget holds, and what a release would leave of it.

    Parameters
    ----------
    epsilon, delta, window
        The budget, and the calendar year of the data that it is about, if any.
    spent, taken
        Shares of it, from 0 to 1: before the release, and by it.
    spent_epsilon, left_epsilon
        Before the release, and after it for one more, at the budget's delta.
    more
        How many more like this one would fit after it.
    """

    epsilon: float
    delta: float
    window: str
    spent: float
    taken: float
    spent_epsilon: float
    left_epsilon: float
    more: int


@dataclass(frozen=True)
class Ranked:
    """A mechanism at the guarantee that is asked for, with the error of its matrix."""

    name: str
    error: float
    mu: float
    epsilon: float
    arithmetic: str
    publishes: ReleaseKind


@dataclass(frozen=True)
class Planned:
    """All that the page of a plan is made of.

    Parameters
    ----------
    title, curator, dataset, version
        Of the data set, and the label of the data.
    unit, neighbours, count, count_key, count_is_public
        What is protected, and how many there are.
    columns, declared, intercept
        How many columns the matrix has, and what the contract says of those of the table.
    normalisation, folds
        As asked for.
    mechanism, publishes, arithmetic
        Of the noise.
    guarantee, law
        Its exact guarantee, and what it does to an entry.
    error, share_of_entry
        Root mean square of its Frobenius norm; and its deviation over an average diagonal entry,
        where that is known.
    epsilon
        What is asked for, or what it turns out to be.
    effect, budget
        On the budget.
    ranking, declined
        All mechanisms at this guarantee, least error first; and why others cannot answer.
    curves
        By mechanism, pairs of epsilon and error.
    """

    title: str
    curator: str
    dataset: str
    version: str
    unit: ProtectedUnit
    neighbours: Neighbours
    count: int
    count_key: str
    count_is_public: bool
    columns: int
    declared: Sequence[Mapping[str, Any]]
    intercept: bool
    normalisation: AnyNormalisation
    folds: int
    mechanism: str
    publishes: ReleaseKind
    arithmetic: str
    guarantee: GuaranteeFacts
    law: NoiseLaw
    error: float
    share_of_entry: float | None
    epsilon: float
    effect: Effect
    budget: BudgetFacts
    ranking: Sequence[Ranked]
    declined: Mapping[str, str]
    curves: Mapping[str, Sequence[tuple[float, float]]]

    @property
    def own_norm(self) -> tuple[float, float] | None:
        """Between what the Frobenius norm of the matrix itself lies, where its trace is 1."""
        known = isinstance(self.normalisation, Unit) and self.unit == "row"
        known &= self.publishes != "precision"
        return (1 / math.sqrt(self.columns), 1.0) if known else None


def plan_page(planned: Planned) -> str:
    """The page of a plan.

    Returns
    -------
    str
        HTML that asks for nothing from anywhere; the same for the same facts.
    """
    kind, words = planned.effect.kind, planned.effect.words
    return render(
        "plan.html",
        plan=planned,
        notes=[
            Note(_LEVELS[kind], _HEADS[kind], f"{words[:1].upper()}{words[1:]}."),
            protection(planned.guarantee),
        ],
        guess=best_guess(planned.guarantee),
        attack=the_attack(planned.neighbours, planned.unit),
        attacker=attacker(planned.guarantee),
        errors=errors(planned) if planned.curves else None,
        bars=_bars([each.error for each in planned.ranking]),
        shown=planned.declared[:_SHOWN],
        more_columns=max(0, len(planned.declared) - _SHOWN),
    )


def errors(planned: Planned) -> Markup:
    """Predicted error against epsilon, a line for every mechanism; what is asked for is marked."""
    words = "Predicted error of the matrix against epsilon, by mechanism, both logarithmic."
    with figure("errors", words, 5.6, 4.2) as drawn:
        axes = drawn.axes
        axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="error of the matrix")
        if planned.own_norm is not None:
            axes.axhspan(*planned.own_norm, color=FAINT, alpha=0.14, linewidth=0)
        for name, points in planned.curves.items():
            own = name == planned.mechanism
            line: Any = {"color": ACCENT if own else FAINT, "linewidth": 2.4 if own else 1}
            axes.plot(*zip(*points, strict=True), zorder=3 if own else 2, **line)
        axes.plot(planned.epsilon, planned.error, "o", color=WARM, markersize=8, zorder=4)
        label = axes.annotate(
            "asked for",
            (planned.epsilon, planned.error),
            (8, 7),
            textcoords="offset points",
            color=INK,
            zorder=4,
        )
        label.set_bbox({"facecolor": PAPER, "alpha": 0.8, "linewidth": 0, "pad": 0.5})
        axes.minorticks_off()
        ticks = [each for each, _ in next(iter(planned.curves.values()))]
        axes.set_xticks(ticks, [f"{each:.3g}" for each in ticks])
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.margins(x=0.02)
        # A mechanism that is worse by far would squeeze the others.
        axes.set_ylim(top=min(axes.get_ylim()[1], _REACH * max(planned.error, 1.0)))
        _names(axes, planned)
    return drawn.svg


def _names(axes: Any, planned: Planned) -> None:
    """The mechanisms' names beside the ends of their lines, none upon another."""
    ends = sorted((points[-1][1], name) for name, points in planned.curves.items())
    low, high = map(math.log, axes.get_ylim())
    apart, place = 0.055, -math.inf
    right = axes.get_xlim()[1]
    for error, name in ends:
        place = max((math.log(error) - low) / (high - low), place + apart)
        axes.annotate(
            name,
            (right, error),
            (1.03, place),
            xycoords="data",
            textcoords="axes fraction",
            va="center",
            color=ACCENT if name == planned.mechanism else INK,
            fontsize=8,
            arrowprops={"arrowstyle": "-", "color": FAINT, "linewidth": 0.6},
        )


def _bars(lengths: Sequence[float]) -> list[float]:
    """Lengths of bars in percent, logarithmic: errors differ by powers of ten."""
    if not lengths:
        return []
    logs = np.log(lengths)
    reach = max(float(logs.max() - logs.min()), math.log(10.0))
    return [float(each) for each in 8 + 92 * (logs - logs.min()) / reach]
