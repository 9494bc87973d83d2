"""Tables of the measured cells: one row per cell, number of folds and quantity."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from benchmarks.intervals.cells import KINDS, QUICK, Cell, Result

Results = dict[Cell, Result]
BAND = (0.93, 0.97)
SURE = 2.0  # standard errors that a deviation has to exceed
FEW = 0.2  # with a smaller share of known entries, coverage describes a selection
LAYOUTS = {1: "no folds", 10: "10 folds"}


def intervals(results: Results) -> pd.DataFrame:
    """One row per cell, number of folds and quantity, with the fields of `Score`.

    `cost` is the standard deviation of the estimates over that without folds, if all entries are
    known in both; `square` is the square of the radius per column, the intercept included.
    """
    lines, order = [], (*KINDS, *QUICK)
    for cell, result in sorted(results.items(), key=lambda each: order.index(each[0].table)):
        for folds, scores in result.scores.items():
            square = result.radii[folds] ** 2 / (result.p + 1)
            for of, score in scores.items():
                without = result.scores["1"][of]
                cost = None
                if score.known == without.known == 1 and score.spread and without.spread:
                    cost = score.spread / without.spread
                fields = {**asdict(cell), "folds": int(folds), "of": of, "cost": cost}
                fields |= {"releases": result.releases, "square": square}
                lines.append({**fields, **asdict(score)})
    table = pd.DataFrame(lines)
    numbers = table.columns.difference(["table", "n", "folds", "of", "releases"])
    return table.astype(dict.fromkeys(numbers, float))


def judged(lines: pd.DataFrame) -> pd.DataFrame:
    """Rows with at least the share `FEW` of entries known."""
    return lines[(lines["known"] >= FEW) & lines["held"].notna()]


def short(lines: pd.DataFrame) -> pd.DataFrame:
    """Rows whose mean coverage of the population is too low beyond chance, lowest first."""
    some = judged(lines)
    low = some["held"] + SURE * some["error"] < BAND[0]
    return some[low].sort_values("held", kind="stable")
