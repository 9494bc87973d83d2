"""Figures of reports, from public facts; one function per figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from gramercy.estimators.noise.spectrum import Spectrum
from gramercy.reports.svg import ACCENT, FAINT, INK, PAPER, WARM, figure
from gramercy.schemas.facts import GuaranteeFacts

Array = NDArray[np.float64]

_LEAST_SCALE = 5  # smallest range of the colour scale for changes, in standard deviations
_UNSTABLE = 0.5  # share of redraws; an edge that recurs less often is dashed
_MOST_SMALL_LABELS = 12  # of a small heat map
_MOST_LABELS = 40  # largest number of columns whose names fit next to a heat map
_POSITIVE, _NEGATIVE, _MUTED = (37, 99, 235), (217, 87, 14), (128, 128, 128)


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


def heat_map(correlation: Array, hidden: NDArray[np.bool_], names: Sequence[str]) -> Markup:
    """A heat map of correlations; entries within the noise are grey.

    Parameters
    ----------
    correlation
        Shape (p, p); NaN where undefined.
    hidden
        Whether an entry is within the noise; shape (p, p).
    names
        The p columns.
    """
    title = "Heat map of the released correlations; entries within the noise are grey."
    return _pixels("heat", title, correlation, hidden, names, 1)


def small_heat_map(
    name: str, title: str, correlation: Array, hidden: NDArray[np.bool_], names: Sequence[str]
) -> Markup:
    """One of several heat maps side by side; see `heat_map`.

    Parameters
    ----------
    name
        Distinguishes the figures of a page.
    title
        What it shows.
    correlation, hidden, names
        See `heat_map`.
    """
    return _pixels(name, title, correlation, hidden, names, 1, side=2.4, heading=title)


def changes(deviations: Array, hidden: NDArray[np.bool_], names: Sequence[str]) -> Markup:
    """A heat map of the differences between two releases; those within the noise are grey.

    Parameters
    ----------
    deviations
        The difference in standard deviations of its noise; shape (p, p).
    hidden
        Whether an entry is within the noise; shape (p, p).
    names
        The p columns.
    """
    title = "Heat map of the changes between two releases; those within the noise are grey."
    limit = max(_LEAST_SCALE, math.ceil(float(np.abs(deviations).max(initial=0.0))))
    return _pixels("changes", title, deviations, hidden, names, limit)


def _pixels(
    name: str,
    title: str,
    values: Array,
    hidden: NDArray[np.bool_],
    names: Sequence[str],
    limit: float,
    *,
    side: float | None = None,
    heading: str = "",
) -> Markup:
    """A matrix in colours, from orange at `-limit` to blue at `limit`."""
    p = len(names)
    scaled = np.nan_to_num(values) / limit
    pixels = np.zeros((p, p, 4))
    colour = np.where((scaled > 0)[..., None], _POSITIVE, _NEGATIVE)
    pixels[..., :3] = np.where(hidden[..., None], _MUTED, colour) / 255
    pixels[..., 3] = np.where(hidden, 0.10, np.clip(np.abs(scaled), 0.04, 1))
    labelled = p <= (_MOST_LABELS if side is None else _MOST_SMALL_LABELS)
    side = side or (4.6 if p > _MOST_LABELS else min(7.2, 3.4 + 0.16 * p))
    with figure(name, title, side + 0.6, side) as drawing:
        axes = drawing.axes
        axes.imshow(pixels, interpolation="auto" if p > 200 else "nearest")
        axes.tick_params(length=0)
        if heading:
            axes.set_title(_short(heading), fontsize=9)
        if labelled:
            size = 8 if p <= 20 else 6
            axes.set_xticks(range(p), [_short(n) for n in names], rotation=90, fontsize=size)
            axes.set_yticks(range(p), [_short(n) for n in names], fontsize=size)
        else:
            axes.set_xticks([])
            axes.set_yticks([])
            if not heading:
                axes.set_xlabel(f"{p} columns, in the order of the contract")
        for spine in axes.spines.values():
            spine.set_visible(False)
        _legend(axes, limit)
    return drawing.svg


def _legend(axes: object, limit: float) -> None:
    """A colour scale from -limit to limit next to a heat map."""
    inset = axes.inset_axes((1.03, 0.0, 0.035, 0.5))  # type: ignore[attr-defined]
    steps = np.linspace(1, -1, 101)[:, None]
    strip = np.empty((101, 1, 4))
    strip[..., :3] = np.where((steps > 0)[..., None], _POSITIVE, _NEGATIVE) / np.float64(255)
    strip[..., 3] = np.abs(steps)
    inset.imshow(strip, aspect="auto", extent=(0, 1, -limit, limit), interpolation="nearest")
    inset.yaxis.tick_right()
    inset.set_xticks([])
    inset.set_yticks([-limit, 0, limit])
    for spine in inset.spines.values():
        spine.set_visible(False)


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


def graph(
    name: str,
    partial: Array,
    names: Sequence[str],
    stability: Array | None = None,
    most_edges: int = 300,
) -> Markup:
    """The graph of an estimated precision matrix.

    Parameters
    ----------
    name
        Id of the estimate.
    partial
        Partial correlations, zero for pairs without an edge; shape (p, p).
    names
        The p columns.
    stability
        Share of redraws in which each pair is an edge; unstable edges are dashed. Shape (p, p).
    most_edges
        If there are more edges, only the strongest are drawn.
    """
    import networkx as nx

    rows, cols = np.nonzero(np.triu(partial, 1))
    strength = np.abs(partial[rows, cols])
    strongest = np.argsort(-strength, kind="stable")[:most_edges]
    nodes = nx.Graph()
    nodes.add_nodes_from(range(len(names)))
    for k in strongest:
        nodes.add_edge(int(rows[k]), int(cols[k]), weight=float(partial[rows[k], cols[k]]))
    connected = [v for v in nodes if nodes.degree(v)]
    isolated = len(names) - len(connected)
    drawn_nodes = nodes.subgraph(connected)
    position = _layout(drawn_nodes)
    title = f"Graph of {len(connected)} columns and {drawn_nodes.number_of_edges()} edges."
    size = 6.4 if len(connected) > 12 else 4.6
    strongest_of_all = max((abs(w) for *_, w in drawn_nodes.edges(data="weight")), default=1.0)
    with figure(f"graph-{name}", title, size, size * 0.85) as drawing:
        axes = drawing.axes
        axes.set_axis_off()
        axes.margins(0.14)
        for a, b, weight in sorted(drawn_nodes.edges(data="weight")):
            unstable = stability is not None and stability[a, b] < _UNSTABLE
            axes.plot(
                *zip(position[a], position[b], strict=True),
                color=ACCENT if weight > 0 else WARM,
                linewidth=0.7 + 4 * abs(weight) / strongest_of_all,
                alpha=0.45 + 0.5 * abs(weight) / strongest_of_all,
                zorder=1,
                linestyle=(0, (2, 1.5)) if unstable else "-",
                solid_capstyle="round",
            )
        for v in connected:
            axes.plot(*position[v], "o", color=INK, markersize=4, zorder=2)
            if len(connected) <= 60:
                label = axes.annotate(
                    _short(names[v]),
                    position[v],
                    (0, 5),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8 if len(connected) <= 20 else 6,
                    color=INK,
                    zorder=3,
                )
                label.set_bbox({"facecolor": PAPER, "alpha": 0.75, "linewidth": 0, "pad": 0.5})
        omitted = [f"{isolated} columns without an edge are not drawn"] if isolated else []
        if rows.size > most_edges:
            omitted.append(f"only the {most_edges} strongest of {rows.size} edges are drawn")
        axes.set_title("; ".join(omitted), fontsize=8, color=INK, loc="left")
    return drawing.svg


def _layout(nodes: object) -> dict[int, tuple[float, float]]:
    """Positions of the nodes: deterministic, and rounded to be equal on every machine."""
    import networkx as nx

    if len(nodes) > 150:  # type: ignore[arg-type]
        layout = nx.circular_layout(nodes)
    else:
        lengths = nx.Graph()
        lengths.add_nodes_from(nodes.nodes)  # type: ignore[attr-defined]
        for a, b, w in nodes.edges(data="weight"):  # type: ignore[attr-defined]
            lengths.add_edge(a, b, length=1 / math.sqrt(0.05 + abs(w)))
        distances = dict(nx.all_pairs_dijkstra_path_length(lengths, weight="length"))
        # Kamada-Kawai needs finite distances between components as well.
        apart = 1.4 * max((max(each.values()) for each in distances.values()), default=1.0)
        full = {a: {b: distances[a].get(b, apart) for b in lengths} for a in lengths}
        layout = nx.kamada_kawai_layout(lengths, dist=full)
    return {v: (round(float(x), 3), round(float(y), 3)) for v, (x, y) in layout.items()}


def _short(name: str, length: int = 24) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"
