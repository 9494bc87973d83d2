"""The results page, from the results alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pandas as pd

from benchmarks.coverage import cells, plots
from benchmarks.coverage.populations import QUANTITIES, RELATIONS
from benchmarks.coverage.releases import FAMILIES, STRENGTHS, WEAK
from benchmarks.coverage.scores import LEVEL, RATES
from benchmarks.coverage.tables import (
    BAND,
    FEW,
    SURE,
    Results,
    discoveries,
    intervals,
    judged,
    known,
    outside,
    over,
)
from benchmarks.markdown import table

_BAND = f"{BAND[0]:.0%} to {BAND[1]:.0%}"


def write(folder: Path) -> None:
    """`results.md` and its figures, from `results.jsonl` in the same folder."""
    results = cells.read(folder / "results.jsonl")
    held, found = intervals(results), discoveries(results)
    (folder / "figures").mkdir(exist_ok=True)
    plots.coverage(held, folder / "figures" / "coverage.svg")
    plots.power(found, folder / "figures" / "power.svg")
    (folder / "results.md").write_text("\n".join(_page(results, held, found)) + "\n")


def _page(results: Results, held: pd.DataFrame, found: pd.DataFrame) -> Iterator[str]:
    yield "# Do intervals hold the truth, and how many discoveries are false\n"
    yield (
        "Written by `python -m benchmarks.coverage` from `results.jsonl`; nothing is typed by "
        "hand. A setting is a graph (AR(1), hub, random), a number of columns and of rows, their "
        "law (Gaussian with mean zero, or such rows divided by their length), a family of noise, "
        f"and its strength ({', '.join(f'{s:g}' for s in STRENGTHS)}: the deviation of an entry "
        "off the diagonal over the average diagonal entry). The truth is the population's second "
        "moment, of unit rows by quadrature, and what follows from it. Wishart matrices have the "
        "fewest degrees of freedom that a mechanism gives, p + 1: that is the most skewed. Above "
        f"a strength of {WEAK:g} the repaired matrix is denoised, below it is projected.\n"
    )
    error, times = known(held)["error"], held["releases"]
    yield (
        f"{len(held) // len(QUANTITIES)} settings, of {times.min()} to {times.max()} releases "
        "each: until the standard error of every coverage is at most "
        f"{cells.PRECISE:.1%}, or {times.max()}. Errors are counted over releases, since the "
        f"entries of one err together: {error.median():.2%} in the middle, {error.max():.2%} at "
        "most; none is given where fewer than five releases know any entry. All noise of a cell "
        "is put on the same samples of rows, so that what chance does at weak noise, it does to "
        "all families alike.\n"
    )
    yield from _coverage(held)
    yield from _outside(held)
    yield from _false(results, found)
    yield from _power(found)
    seconds = [result.seconds for result in results.values()]
    yield f"\n{sum(seconds) / 60:.0f} minutes on one core, {max(seconds):.0f} s a cell at most."


def _coverage(held: pd.DataFrame) -> Iterator[str]:
    some = judged(held)
    yield f"## Coverage of {LEVEL:.0%} intervals\n"
    yield (
        f"Of the known entries, in settings where at least {FEW:.0%} of them are known: an "
        "interval that is everything is not counted as one that holds. Width: over that of an "
        "oracle, who knows the deviation of the estimate; the median over settings, and between "
        f"which numbers {LEVEL:.0%} of them lie.\n"
    )
    yield "![coverage against noise](figures/coverage.svg)\n"
    yield "Means over settings, and the least and most of them; grey is the band.\n"
    lines = []
    for of, family in product(QUANTITIES, (*FAMILIES, "all")):
        here = some[(some["of"] == of) & ((some["family"] == family) | (family == "all"))]
        every = held[(held["of"] == of) & ((held["family"] == family) | (family == "all"))]
        if len(here):
            shares = here["held"]
            tail = (1 - LEVEL) / 2
            spans = (shares.min(), shares.mean(), shares.max())
            low, middle, high = here["width"].quantile([tail, 0.5, 1 - tail])
            inside = int(shares.between(*BAND).sum())
            lucky = len(known(every)) - len(here)
            lines.append(
                (
                    of,
                    family,
                    *(f"{each:.1%}" for each in spans),
                    f"{inside} of {len(here)}",
                    f"{middle:.2f} ({low:.2f} to {high:.2f})",
                    str(lucky),
                    str(len(every) - len(here) - lucky),
                )
            )
    within, few = f"within {_BAND}", f"fewer than {FEW:.0%} known"
    head = ("quantity", "noise", "least", "mean", "most", within, "width", few, "none known")
    yield from table(head, lines)


def _outside(held: pd.DataFrame) -> Iterator[str]:
    found = outside(held)
    yield f"## Every setting outside {_BAND}\n"
    if not len(found):
        yield "None.\n"
        return
    low, few = found["held"] < BAND[0], found["known"] < FEW
    far = (found["held"] - LEVEL).abs() - SURE * found["error"] > (BAND[1] - BAND[0]) / 2
    yield (
        f"{len(found)} of {len(known(held))} coverages: {(low & few).sum()} below and "
        f"{(~low & few).sum()} above where fewer than {FEW:.0%} of the entries are known, "
        f"{(low & ~few).sum()} below and {(~low & ~few).sum()} above elsewhere. {far.sum()} of "
        f"them are outside by more than {SURE:g} standard errors.\n"
    )
    lines = [
        (
            line.of, line.family, f"{line.strength:g}", line.graph, f"{line.p}", f"{line.n}",
            line.rows, f"{line.known:.1%}",
            f"{line.held:.1%}" + ("" if pd.isna(line.error) else f" ± {line.error:.1%}"),
            "" if pd.isna(line.width) else f"{line.width:.2f}",
        )
        for line in found.itertuples()
    ]  # fmt: skip
    head = ("quantity", "noise", "strength", "graph", "p", "n", "rows", "known", "coverage")
    yield from table((*head, "width"), lines)


def _false(results: Results, found: pd.DataFrame) -> Iterator[str]:
    stray = max(result.stray.get("partial-correlation", 0.0) for result in results.values())
    yield "## False discoveries\n"
    yield (
        "By Benjamini and Hochberg; the mean over releases of the share of false ones, 0 where "
        "there are none. Only populations in which some pairs have no such correlation. Unit rows "
        "are judged by the graph of the rows before they were divided: to divide gives pairs "
        f"without an edge partial correlations of up to {stray:.2g}, which are discoveries, and "
        "true ones, counted here as false: at many rows they show. `over`: settings in which more "
        f"are false than the rate allows, by more than {SURE:g} standard errors.\n"
    )
    lines = []
    for of, rows, family in product(RELATIONS, ("gaussian", "unit"), FAMILIES):
        here = found[(found["of"] == of) & (found["rows"] == rows) & (found["family"] == family)]
        if not len(here):
            continue
        line = [of, rows, family]
        for rate in RATES:
            at = here[here["rate"] == rate]
            most = at.loc[at["false"].idxmax()]
            line += [
                f"{at['false'].mean():.3f}",
                f"{most['false']:.3f} ± {most['error']:.3f}",
                f"{most['graph']}, p = {most['p']}, n = {most['n']}, {most['strength']:g}",
                f"{len(over(at))} of {len(at)}",
            ]
        lines.append(line)
    yield from _where(over(found))
    at_rate = [f"{rate:g}: {name}" for rate in RATES for name in ("mean", "most", "where", "over")]
    yield from table(("correlation", "rows", "noise", *at_rate), lines)


def _where(lines: pd.DataFrame) -> Iterator[str]:
    """Settings in which more are false than allowed, counted by what they are."""
    if not len(lines):
        yield "No setting is over.\n"
        return
    counts = lines.groupby(["rate", "of", "rows", "p", "n"]).size()
    yield "Over, by rate, rows, p and n:\n"
    for (rate, of, rows, p, n), count in counts.items():
        yield f"- {rate:g}, {of}, {rows} rows, p = {p}, n = {n}: {count} of the settings"
    yield ""


def _power(found: pd.DataFrame) -> Iterator[str]:
    yield "## Power\n"
    yield "![power against noise](figures/power.svg)\n"
    yield "Share of the true edges that are found, mean over settings.\n"
    lines = []
    for of, family in product(RELATIONS, FAMILIES):
        here = found[(found["of"] == of) & (found["family"] == family)]
        for strength, some in here.groupby("strength"):
            shares = [f"{some[some['rate'] == r]['power'].mean():.2f}" for r in RATES]
            lines.append((of, family, f"{strength:g}", *shares))
    head = ("correlation", "noise", "strength", *(f"rate {rate:g}" for rate in RATES))
    yield from table(head, lines)
