"""Write the results page from the stored results."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pandas as pd

from benchmarks.cells import Benchmark, read_results
from benchmarks.pages import table, write_page
from benchmarks.verdicts import cells
from benchmarks.verdicts.cells import EPSILONS, MEASURED, POPULATION, ROWS
from benchmarks.verdicts.tables import (
    QUANTITIES,
    Results,
    coverage,
    releases,
    width,
)
from tests.support.kinds_of_tables import GROUPS, KINDS
from tests.support.private_release import DELTA
from tests.support.verdict_truth import FINE, WRONG


def write(folder: Path) -> None:
    """Write `results.md` from `results.jsonl` in the same folder."""
    results = read_results(folder / "results.jsonl", cells.Result)
    write_page(folder / "results.md", _page(results))


def _page(results: Results) -> Iterator[str]:
    lines = releases(results)
    yield "# Verdict against truth\n"
    yield (
        "For stewards who want to know what a green verdict is worth, and for analysts who rely on "
        f"intervals: {len(lines)} releases of {lines['kind'].nunique()} kinds of generated tables, "
        f"plain ones and difficult ones. Each is a sample of {POPULATION:,} rows of its kind, with "
        "round bounds around the data, released as a whole with `scaling: private` at an exact "
        f"(epsilon, {DELTA:g}) guarantee (replace-one). Written by `python -m benchmarks verdicts` "
        f"from `results.jsonl`, which was measured on {MEASURED}. Noise is seeded, so nothing here "
        "is a release.\n"
    )
    yield from _verdicts(lines)
    yield from _by_kind(lines)
    yield from _false(lines)
    yield from _intervals(results)
    yield from _kinds(results)
    seconds = sum(result.seconds for result in results.values())
    yield f"\n{seconds / 60:.0f} minutes on one core."


def _verdicts(lines: pd.DataFrame) -> Iterator[str]:
    yield "## Verdicts\n"
    yield (
        "A green verdict may set up to a tenth of the columns aside by name. It is false if one of "
        f"the correlations it is about is off by more than {WRONG:g} from that of the table's own "
        "cells. Some of these rest on rows that are so few that the noise hides them; a report "
        "says how many they may be. `could be seen` counts the others: the correlation is off from "
        "that of the table without such rows as well. A release is fine if no correlation is off "
        f"by {FINE:g} or more from that of the cells within the bounds in use.\n"
    )
    body = []
    for n, epsilon in product(ROWS, EPSILONS):
        here = lines[(lines["n"] == n) & (lines["epsilon"] == epsilon)]
        if len(here):
            body.append((f"{n:,}", f"{epsilon:g}", *_counts(here)))
    body.append(("all", "", *_counts(lines)))
    yield from table(
        (
            "rows", "epsilon", "releases", "green", "of these, with columns set aside", "false",
            "of these, could be seen", "fine", "of these, not green",
        ),
        body,
    )  # fmt: skip


def _counts(lines: pd.DataFrame) -> tuple[str, ...]:
    false = lines[lines["false"]]
    numbers = (
        len(lines),
        lines["green"].sum(),
        (lines["excepted"] > 0).sum(),
        len(false),
        (false["visible"] > WRONG).sum(),
        lines["fine"].sum(),
        (lines["fine"] & ~lines["green"]).sum(),
    )
    return tuple(str(int(number)) for number in numbers)


def _by_kind(lines: pd.DataFrame) -> Iterator[str]:
    yield "## By kind of table\n"
    yield (
        "Green / false / fine but not green, of the releases of each cell; and the root mean "
        "square error of correlations, the median over the releases.\n"
    )
    settings = [
        (n, epsilon)
        for n, epsilon in product(ROWS, EPSILONS)
        if ((lines["n"] == n) & (lines["epsilon"] == epsilon)).any()
    ]
    body = []
    for group in GROUPS:
        for kind, here in lines[lines["group"] == group].groupby("kind", sort=False):
            texts = []
            for n, epsilon in settings:
                own = here[(here["n"] == n) & (here["epsilon"] == epsilon)]
                texts.append(_kind(own) if len(own) else "")
            body.append((str(kind), group, *texts))
    heads = (f"{n:,}, epsilon {epsilon:g}" for n, epsilon in settings)
    yield from table(("kind", "", *heads), body)


def _kind(lines: pd.DataFrame) -> str:
    counts = lines["green"].sum(), lines["false"].sum(), (lines["fine"] & ~lines["green"]).sum()
    return f"{' / '.join(map(str, counts))} of {len(lines)}; {lines['error'].median():.2g}"


def _false(lines: pd.DataFrame) -> Iterator[str]:
    yield "## Every false verdict\n"
    yield (
        "Largest errors of correlations: from the table, from the table without rows that leave no "
        "trace (if that is smaller), and from its cells within the bounds in use.\n"
    )
    body = [
        (
            line.kind,
            f"{line.n:,}",
            f"{line.epsilon:g}",
            str(line.excepted),
            f"{line.largest:.2f}",
            f"{line.visible:.2f}",
            f"{line.clamped:.2f}",
        )
        for line in lines[lines["false"]].itertuples()
    ]
    head = ("kind", "rows", "epsilon", "set aside", "table", "without them", "clamped cells")
    yield from table(head, body)


def _intervals(results: Results) -> Iterator[str]:
    yield "## Coverage of 95% intervals\n"
    yield (
        "Of the values of the released table itself, and of the population. In brackets the "
        "coverage of the column or pair that is covered least, of one kind of table over its "
        "releases: with three to five releases, chance alone makes it low for some. Width is of "
        "the intervals of own values: of means and standard deviations in true standard "
        "deviations, the geometric mean. `unknown` is the share without an interval, mostly of "
        "columns of which only is published which cells differ from the usual value. `off ten "
        "times` counts standard deviations that are wrong by more than that without a word.\n"
    )
    body = []
    for n, epsilon in product(ROWS, EPSILONS):
        here = [each for cell, each in results.items() if (cell.n, cell.epsilon) == (n, epsilon)]
        if not here:
            continue
        off = sum(draw.off for each in here for draw in each.draws)
        for of in QUANTITIES:
            own, population = (coverage(here, of, whose) for whose in ("own", "population"))
            body.append(
                (
                    f"{n:,}",
                    f"{epsilon:g}",
                    of.replace("-", " "),
                    *(_coverage(*each[:2]) for each in (own, population)),
                    f"{width(here, of):.2g}",
                    f"{1 - own[2]:.1%}",
                    str(off) if of == "standard-deviation" else "",
                )
            )
    yield from table(
        (
            "rows", "epsilon", "quantity", "own values", "population", "width", "unknown",
            "off ten times",
        ),
        body,
    )  # fmt: skip


def _coverage(mean: float, least: float) -> str:
    return f"{mean:.1%}" + ("" if pd.isna(least) else f" ({least:.0%})")


def _kinds(results: Results) -> Iterator[str]:
    yield "## Coverage by kind of table\n"
    yield "Of own values, over all sizes and epsilons: mean / standard deviation / correlation.\n"
    body = []
    for name, kind in KINDS.items():
        here = [each for cell, each in results.items() if cell.kind == name]
        if here:
            found = (coverage(here, of, "own")[0] for of in QUANTITIES)
            draws = sum(len(each.draws) for each in here)
            texts = " / ".join("-" if pd.isna(each) else f"{each:.0%}" for each in found)
            body.append((name, kind.group, kind.title, str(draws), texts))
    yield from table(("kind", "", "", "releases", "coverage"), body)


BENCHMARK = Benchmark(
    name="verdicts",
    quick="measure three kinds with few rows",
    result=cells.Result,
    missing=cells.missing,
    measure=cells.measure,
    label=lambda cell: f"{cell.kind} {cell.n} {cell.epsilon:g}",
    write=write,
)
