"""The page of a planned release, from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from gramercy.common.notation import in_symbols
from gramercy.common.plotting import ACCENT, FAINT, INK, PAPER, WARM, figure
from gramercy.reports.figures import attacker
from gramercy.reports.reader_notes import Level, Note, best_attacker_accuracy, protection_note
from gramercy.reports.rendering import Links, navigation, no_links, render
from gramercy.reports.steps import PlannedStep
from gramercy.schemas.budget import BudgetEffect
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.neighbours import Neighbours, ProtectedUnit
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.normalisation import AnyNormalisation
from gramercy.schemas.publications import Publication

_LISTED_COLUMNS = 60
_CHART_RANGE = 30  # the chart shows errors up to this multiple of the planned one
_LEVELS: dict[str, Level] = {
    "charged": "good",
    "included": "good",
    "free": "good",
    "refused": "danger",
}
_HEADS = {
    "charged": "It fits the budget",
    "included": "It costs nothing more",
    "free": "It costs nothing",
    "refused": "It would be refused",
}


@dataclass(frozen=True)
class BudgetFacts:
    """A budget, and what a release would leave of it."""

    # The budget, and the calendar year of its data, if it is per year
    epsilon: float
    delta: float
    window: str
    # Shares of it, from 0 to 1: spent before the release, and taken by it
    spent: float
    taken: float
    # Epsilon spent before the release, and the epsilon that one further release could have, at the
    # budget's delta
    spent_epsilon: float
    left_epsilon: float
    releases_left: int  # How many releases like this one would still fit afterwards


@dataclass(frozen=True)
class RankingRow:
    """A mechanism at the requested guarantee, with the error of its matrix."""

    name: str
    error: float
    mu: float
    epsilon: float
    arithmetic: str
    publishes: str


@dataclass(frozen=True)
class PlanFacts:
    """The facts on the page of a plan."""

    # The data set and the version
    title: str
    curator: str
    dataset: str
    version: str
    # The unit of protection, and the number of units
    privacy_unit: ProtectedUnit
    neighbours: Neighbours
    count: int
    count_key: str
    count_is_public: bool
    # Number of columns of the matrix, and the declarations of the table's columns
    columns: int
    declared: Sequence[Mapping[str, Any]]
    intercept: bool
    # As in the request
    normalisation: AnyNormalisation
    folds: int
    # The mechanism
    mechanism: str
    publishes: Publication
    arithmetic: str
    # Its exact guarantee and its noise law
    guarantee: GuaranteeFacts
    law: NoiseLaw
    # Standard deviation of the noise on a count of a histogram; None without histograms
    count_sd: float | None
    # Root mean square of the Frobenius norm of the noise; standard deviation of the noise divided
    # by an average diagonal entry, if that is known
    error: float
    share_of_entry: float | None
    # Share of the squared mu for a pilot matrix, which may be 0
    share_of_pilot: float
    epsilon: float  # The requested epsilon, or that of the resulting guarantee
    # Whether the release would be of use; None if no second moment is published
    verdict: Note | None
    # The effect on the budget
    effect: BudgetEffect
    budget: BudgetFacts
    # Mechanisms at this guarantee by increasing error; and the others, with the reason
    ranking: Sequence[RankingRow]
    declined: Mapping[str, str]
    step: PlannedStep | None  # The step of a cumulative series
    curves: Mapping[str, Sequence[tuple[float, float]]]  # Pairs of epsilon and error by mechanism

    @property
    def norm_bounds(self) -> tuple[float, float] | None:
        """Bounds on the Frobenius norm of the exact matrix; None if its trace may not be 1."""
        has_unit_trace = self.normalisation.unit_rows and self.privacy_unit == "row"
        has_unit_trace &= self.publishes.is_moment
        return (1 / math.sqrt(self.columns), 1.0) if has_unit_trace else None


def plan_page(planned: PlanFacts, links: Links = no_links) -> str:
    """The page of a plan: self-contained HTML, a function of the facts alone."""
    kind, bars = planned.effect.kind, list[float]()
    if planned.ranking:  # lengths in per cent, on a logarithmic scale
        logs = np.log([each.error for each in planned.ranking])
        reach = max(float(logs.max() - logs.min()), math.log(10.0))
        bars = [float(each) for each in 8 + 92 * (logs - logs.min()) / reach]
    effect = Note(_LEVELS[kind], _HEADS[kind], in_symbols(planned.effect.words, [planned.dataset]))
    verdict = [planned.verdict] if planned.verdict else []
    notes = [*verdict, effect, protection_note(planned.guarantee)]
    return render(
        "plan.html",
        navigation=navigation(
            links, f"Plan of version {planned.version}", (planned.dataset, planned.title)
        ),
        plan=planned,
        notes=sorted(notes, key=lambda note: note != effect) if kind == "refused" else notes,
        accuracy=best_attacker_accuracy(planned.guarantee),
        attack=planned.neighbours.attack(planned.privacy_unit),
        attacker=attacker(planned.guarantee),
        errors=error_curves(planned) if planned.curves else None,
        bars=bars,
        listed=planned.declared[:_LISTED_COLUMNS],
        more_columns=max(0, len(planned.declared) - _LISTED_COLUMNS),
    )


def error_curves(planned: PlanFacts) -> Markup:
    """Predicted error against epsilon, one line per mechanism, with the request marked."""
    title = "Predicted error of the matrix against ε, by mechanism, both logarithmic."
    with figure("errors", title, 5.6, 4.2) as drawing:
        axes = drawing.axes
        axes.set(xscale="log", yscale="log", xlabel="ε", ylabel="error of the matrix")
        if planned.norm_bounds is not None:
            axes.axhspan(*planned.norm_bounds, color=FAINT, alpha=0.14, linewidth=0)
        for name, points in planned.curves.items():
            is_requested = name == planned.mechanism
            line: Any = {
                "color": ACCENT if is_requested else FAINT,
                "linewidth": 2.4 if is_requested else 1,
            }
            axes.plot(*zip(*points, strict=True), zorder=3 if is_requested else 2, **line)
        axes.plot(planned.epsilon, planned.error, "o", color=WARM, markersize=8, zorder=4)
        label = axes.annotate(
            "request",
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
        # Otherwise a much larger error would compress the lines of the other mechanisms.
        axes.set_ylim(top=min(axes.get_ylim()[1], _CHART_RANGE * max(planned.error, 1.0)))
        _names(axes, planned)
    return drawing.svg


def _names(axes: Any, planned: PlanFacts) -> None:
    """Write the mechanisms' names at the ends of their lines, without overlap."""
    ends = sorted((points[-1][1], name) for name, points in planned.curves.items())
    low, high = map(math.log, axes.get_ylim())
    spacing, height = 0.055, -math.inf
    right = axes.get_xlim()[1]
    for error, name in ends:
        height = max((math.log(error) - low) / (high - low), height + spacing)
        axes.annotate(
            name,
            (right, error),
            (1.06, height),
            xycoords="data",
            textcoords="axes fraction",
            va="center",
            color=ACCENT if name == planned.mechanism else INK,
            fontsize=8,
            ha="left",
            arrowprops={  # to the left edge of the name, not to its middle
                "arrowstyle": "-",
                "color": FAINT,
                "linewidth": 0.6,
                "relpos": (0, 0.5),
                "shrinkB": 0,
            },
        )
