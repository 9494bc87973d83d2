"""The measured releases as a table, and the coverage of their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import chain

import numpy as np
import pandas as pd

from benchmarks.verdicts.cells import Cell, Draw, Result
from tests.support.kinds_of_tables import KINDS

Results = dict[Cell, Result]
QUANTITIES = ("mean", "standard-deviation", "correlation")
_SEVERAL = 3


def releases(results: Results) -> pd.DataFrame:
    """One row per release, with the fields of `VerdictTruth`, `signs` and `off`."""
    order = list(KINDS)
    lines = []
    for cell, result in sorted(results.items(), key=lambda each: order.index(each[0].kind)):
        group = KINDS[cell.kind].group
        for draw in result.draws:
            verdict = draw.verdict
            fields = {"green": verdict.green, "false": verdict.false, "fine": verdict.fine}
            more = {**fields, "signs": draw.signs, "off": draw.off, "group": group}
            lines.append({**asdict(cell), **asdict(verdict), **more})
    return pd.DataFrame(lines)


def coverage(results: Iterable[Result], of: str, whose: str) -> tuple[float, float, float]:
    """Mean coverage, that of the column or pair with the least, and the share that is known.

    `whose`: ``own`` or ``population``. The least is of an entry of one kind of table, over its
    releases of this size and epsilon, if they are at least three. NaN where nothing is known.
    """
    held = known = entries = 0
    least: list[float] = []
    for result in results:
        texts = [getattr(draw, whose)[of] for draw in result.draws]
        joined = "".join(texts)
        held, known = held + joined.count("1"), known + len(joined) - joined.count("-")
        entries += len(joined)
        least += _by_entry(texts)
    mean = held / known if known else np.nan
    return mean, min(least, default=np.nan), known / max(entries, 1)


def _by_entry(texts: Sequence[str]) -> list[float]:
    """Coverage of each entry that every one of several releases knows."""
    if len(texts) < _SEVERAL:
        return []
    columns = ["".join(each) for each in zip(*texts, strict=True)]
    return [each.count("1") / len(each) for each in columns if "-" not in each]


def width(results: Iterable[Result], of: str) -> float:
    """Geometric mean of the widths of the intervals of own values."""
    draws: list[Draw] = list(chain.from_iterable(each.draws for each in results))
    values = np.array([each.width[of] for each in draws])
    values = values[np.isfinite(values) & (values > 0)]
    return float(np.exp(np.log(values).mean())) if values.size else np.nan
