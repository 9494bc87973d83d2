"""Tables of the measured cells: one row per cell, number of folds and quantity."""

from __future__ import annotations

from dataclasses import asdict

import pandas as pd

from benchmarks.intervals.cells import KINDS, Cell, Result
from benchmarks.intervals.populations import DELTA
from gramercy.pipeline.plan.calibration import folds_of_draft

Results = dict[Cell, Result]
BAND, LEAST = (0.93, 0.97), 0.88
FEW = 0.2  # with a smaller share of known entries, coverage describes a selection
LAYOUTS = {1: "no folds", 10: "10 folds", 20: "20 folds"}


def intervals(results: Results) -> pd.DataFrame:
    """One row per cell, number of folds and quantity, with the fields of `Score`.

    `cost` is the standard deviation of the estimates over that without folds, if all entries are
    known in both; `drafted` tells whether `gramercy new` drafts folds for such a release; `square`
    is the square of the radius per column, the intercept included.
    """
    lines = []
    for cell, result in sorted(results.items(), key=lambda each: KINDS.index(each[0].table)):
        drafted = folds_of_draft(cell.n, result.p, cell.epsilon, DELTA) > 1
        for folds, scores in result.scores.items():
            square = result.radii[folds] ** 2 / (result.p + 1)
            for of, score in scores.items():
                without = result.scores["1"][of]
                cost = None
                if score.known == without.known == 1 and score.spread and without.spread:
                    cost = score.spread / without.spread
                fields = {**asdict(cell), "folds": int(folds), "of": of, "cost": cost}
                fields |= {"drafted": drafted, "square": square}
                lines.append({**fields, **asdict(score)})
    table = pd.DataFrame(lines)
    numbers = table.columns.difference(["table", "n", "folds", "of", "drafted"])
    return table.astype(dict.fromkeys(numbers, float))


def judged(lines: pd.DataFrame) -> pd.DataFrame:
    """Rows with at least the share `FEW` of entries known."""
    return lines[(lines["known"] >= FEW) & lines["held"].notna()]


def short(lines: pd.DataFrame) -> pd.DataFrame:
    """Rows with folds whose mean coverage, or that of an entry, is too low; lowest first."""
    some = judged(lines)
    some = some[some["folds"] > 1]
    low = (some["held"] < BAND[0]) | (some["worst"] < LEAST)
    return some[low].sort_values("worst", kind="stable")
