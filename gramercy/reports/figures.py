"""What the report draws: from public facts, one figure a function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from gramercy.estimators.noise.spectrum import Spectrum
from gramercy.reports.svg import ACCENT, FAINT, INK, PAPER, WARM, figure
from gramercy.schemas.facts import GuaranteeFacts

Array = NDArray[np.float64]

_FAR = 5  # deviations, at least, that a scale of changes reaches
_SELDOM = 0.5  # of the draws of a release anew: an edge that may be chance
_LABELS_UP_TO = 40  # columns whose names fit beside a heat map
_POSITIVE, _NEGATIVE, _MUTED = (37, 99, 235), (217, 87, 14), (128, 128, 128)


def attacker(guarantee: GuaranteeFacts) -> Markup:
    """What the best attacker could tell, at most: detections against false alarms."""
    alarms = np.concatenate([np.logspace(-5, -2, 100), np.linspace(0.01, 1, 200)])
    found = _detections(guarantee, alarms)
    words = "Detections against false alarms of the best attacker, beside blind guessing."
    with figure("attacker", words, 4.4, 3.6) as drawn:
        axes = drawn.axes
        axes.plot([0, 1], [0, 1], color=FAINT, linewidth=1, linestyle="--")
        axes.fill_between(alarms, alarms, found, color=ACCENT, alpha=0.15, linewidth=0)
        axes.plot(alarms, found, color=ACCENT, linewidth=2)
        thread = {"arrowstyle": "-", "color": FAINT, "linewidth": 0.8}
        top = (0.3, float(_detections(guarantee, np.array([0.3]))[0]))
        axes.annotate("best attacker", top, (0.03, 0.93), color=INK, arrowprops=thread)
        axes.annotate("blind guessing", (0.6, 0.6), (0.62, 0.3), color=INK, arrowprops=thread)
        axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="false alarms", ylabel="detections")
        axes.set_aspect("equal")
    return drawn.svg


def _detections(guarantee: GuaranteeFacts, alarms: Array) -> Array:
    found: Array = np.minimum(1.0, ndtr(ndtri(alarms) + guarantee.mu) + guarantee.delta0)
    if guarantee.pure is None:
        return found
    grows = math.exp(min(guarantee.pure, 700.0))
    return np.minimum(found, np.minimum(grows * alarms, 1 - (1 - alarms) / grows))


def heat_map(correlation: Array, hidden: NDArray[np.bool_], names: Sequence[str]) -> Markup:
    """Correlations; entries inside their noise are grey.

    Parameters
    ----------
    correlation
        Shape (p, p); NaN where it cannot be told.
    hidden
        Whether an entry lies inside its noise; shape (p, p).
    names
        The p columns.
    """
    words = "Heat map of the released correlations; entries inside their noise are grey."
    return _pixels("heat", words, correlation, hidden, names, 1)


def changes(deviations: Array, hidden: NDArray[np.bool_], names: Sequence[str]) -> Markup:
    """How far two releases differ, entry by entry; what noise can explain is grey.

    Parameters
    ----------
    deviations
        The difference in standard deviations of its noise; shape (p, p).
    hidden
        Whether an entry lies inside its noise; shape (p, p).
    names
        The p columns.
    """
    words = "Heat map of the changes between two releases; those inside their noise are grey."
    most = max(_FAR, math.ceil(float(np.abs(deviations).max(initial=0.0))))
    return _pixels("changes", words, deviations, hidden, names, most)


def _pixels(
    name: str,
    words: str,
    values: Array,
    hidden: NDArray[np.bool_],
    names: Sequence[str],
    most: float,
) -> Markup:
    """A matrix in colours: blue up to `most`, orange down to as much below zero."""
    p = len(names)
    known = np.nan_to_num(values) / most
    pixels = np.zeros((p, p, 4))
    colour = np.where((known > 0)[..., None], _POSITIVE, _NEGATIVE)
    pixels[..., :3] = np.where(hidden[..., None], _MUTED, colour) / 255
    pixels[..., 3] = np.where(hidden, 0.10, np.clip(np.abs(known), 0.25, 1))
    side = 4.6 if p > _LABELS_UP_TO else min(7.2, 3.4 + 0.16 * p)
    with figure(name, words, side + 0.6, side) as drawn:
        axes = drawn.axes
        axes.imshow(pixels, interpolation="auto" if p > 200 else "nearest")
        axes.tick_params(length=0)
        if p <= _LABELS_UP_TO:
            size = 8 if p <= 20 else 6
            axes.set_xticks(range(p), [_short(n) for n in names], rotation=90, fontsize=size)
            axes.set_yticks(range(p), [_short(n) for n in names], fontsize=size)
        else:
            axes.set_xticks([])
            axes.set_yticks([])
            axes.set_xlabel(f"{p} columns, in the order of the contract")
        for spine in axes.spines.values():
            spine.set_visible(False)
        _legend(axes, most)
    return drawn.svg


def _legend(axes: object, most: float) -> None:
    """A scale from -most to most beside a heat map."""
    inset = axes.inset_axes((1.03, 0.0, 0.035, 0.5))  # type: ignore[attr-defined]
    steps = np.linspace(1, -1, 101)[:, None]
    strip = np.empty((101, 1, 4))
    strip[..., :3] = np.where((steps > 0)[..., None], _POSITIVE, _NEGATIVE) / np.float64(255)
    strip[..., 3] = np.abs(steps)
    inset.imshow(strip, aspect="auto", extent=(0, 1, -most, most), interpolation="nearest")
    inset.yaxis.tick_right()
    inset.set_xticks([])
    inset.set_yticks([-most, 0, most])
    for spine in inset.spines.values():
        spine.set_visible(False)


def eigenvalues(found: Spectrum, repair: str) -> Markup:
    """The released spectrum, the repaired one, and that of pure noise."""
    from matplotlib.ticker import MaxNLocator

    rank = np.arange(1, found.released.size + 1)
    words = "Eigenvalues of the released matrix beside those of pure noise."
    with figure("spectrum", words, 6.4, 3.2) as drawn:
        axes = drawn.axes
        axes.axhspan(found.lower, found.upper, color=FAINT, alpha=0.15, linewidth=0)
        axes.plot(rank, found.noise, color=FAINT, linewidth=1.2, label="pure noise")
        style: Any = {"markersize": 4 if rank.size <= 100 else 2, "linestyle": "none"}
        axes.plot(rank, found.repaired, "o", color=ACCENT, label=repair, **style)
        hollow: Any = {"markerfacecolor": "none", "markeredgecolor": WARM, "color": WARM}
        axes.plot(rank, found.released, "o", label="as released", **style, **hollow)
        axes.axhline(0, color=FAINT, linewidth=0.6)
        axes.set(xlabel="rank", ylabel="eigenvalue")
        # A share of the trace that dwarfs the rest would hide it.
        reach = max(found.upper, -found.lower)
        axes.set_yscale("symlog", linthresh=max(reach, 1e-300))
        most = float(found.released.max(initial=found.upper))
        decades = [d for d in 10.0 ** np.arange(-12, 4) if 1.5 * reach < d <= most]
        axes.minorticks_off()
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_yticks([found.lower, 0.0, found.upper, *decades])
        axes.set_ylim(1.3 * min(float(found.released[-1]), found.lower), 1.3 * most)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:.2g}".replace("-", "−"))
        axes.legend(frameon=False)
    return drawn.svg


def graph(
    name: str,
    partial: Array,
    names: Sequence[str],
    again: Array | None = None,
    most_edges: int = 300,
) -> Markup:
    """The graph of an estimated precision matrix.

    Parameters
    ----------
    name
        Of the estimate.
    partial
        Partial correlations, zero where there is no edge; shape (p, p).
    names
        The p columns.
    again
        How often each pair comes back as an edge; those that seldom do are dashed. Shape (p, p).
    most_edges
        Draw the strongest ones alone where there are more.
    """
    import networkx as nx

    rows, cols = np.nonzero(np.triu(partial, 1))
    strength = np.abs(partial[rows, cols])
    strongest = np.argsort(-strength, kind="stable")[:most_edges]
    nodes = nx.Graph()
    nodes.add_nodes_from(range(len(names)))
    for k in strongest:
        nodes.add_edge(int(rows[k]), int(cols[k]), weight=float(partial[rows[k], cols[k]]))
    shown = [v for v in nodes if nodes.degree(v)]
    alone = len(names) - len(shown)
    drawn_nodes = nodes.subgraph(shown)
    place = _layout(drawn_nodes)
    words = f"Graph of {len(shown)} columns and {drawn_nodes.number_of_edges()} edges."
    size = 6.4 if len(shown) > 12 else 4.6
    strongest_of_all = max((abs(w) for *_, w in drawn_nodes.edges(data="weight")), default=1.0)
    with figure(f"graph-{name}", words, size, size * 0.85) as drawn:
        axes = drawn.axes
        axes.set_axis_off()
        axes.margins(0.14)
        for a, b, weight in sorted(drawn_nodes.edges(data="weight")):
            axes.plot(
                *zip(place[a], place[b], strict=True),
                color=ACCENT if weight > 0 else WARM,
                linewidth=0.7 + 4 * abs(weight) / strongest_of_all,
                alpha=0.45 + 0.5 * abs(weight) / strongest_of_all,
                zorder=1,
                linestyle=(0, (2, 1.5)) if again is not None and again[a, b] < _SELDOM else "-",
                solid_capstyle="round",
            )
        for v in shown:
            axes.plot(*place[v], "o", color=INK, markersize=4, zorder=2)
            if len(shown) <= 60:
                label = axes.annotate(
                    _short(names[v]),
                    place[v],
                    (0, 5),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8 if len(shown) <= 20 else 6,
                    color=INK,
                    zorder=3,
                )
                label.set_bbox({"facecolor": PAPER, "alpha": 0.75, "linewidth": 0, "pad": 0.5})
        left_out = [f"{alone} columns without an edge are not drawn"] if alone else []
        if rows.size > most_edges:
            left_out.append(f"the {most_edges} strongest of {rows.size} edges are")
        axes.set_title("; ".join(left_out), fontsize=8, color=INK, loc="left")
    return drawn.svg


def _layout(nodes: object) -> dict[int, tuple[float, float]]:
    """Where the nodes stand; the same for the same graph, and rounded, so on every machine."""
    import networkx as nx

    if len(nodes) > 150:  # type: ignore[arg-type]
        found = nx.circular_layout(nodes)
    else:
        lengths = nx.Graph()
        lengths.add_nodes_from(nodes.nodes)  # type: ignore[attr-defined]
        for a, b, w in nodes.edges(data="weight"):  # type: ignore[attr-defined]
            lengths.add_edge(a, b, length=1 / math.sqrt(0.05 + abs(w)))
        reach = dict(nx.all_pairs_dijkstra_path_length(lengths, weight="length"))
        apart = 1.4 * max((max(each.values()) for each in reach.values()), default=1.0)
        far = {a: {b: reach[a].get(b, apart) for b in lengths} for a in lengths}
        found = nx.kamada_kawai_layout(lengths, dist=far)
    return {v: (round(float(x), 3), round(float(y), 3)) for v, (x, y) in found.items()}


def _short(name: str, most: int = 24) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
