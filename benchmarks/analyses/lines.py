"""The methods side by side, for every table and epsilon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from benchmarks.analyses.cells import Result
from benchmarks.analyses.methods import (
    COMPONENT_EPSILONS,
    COMPONENT_TABLES,
    EPSILONS,
    FOLDED_EPSILONS,
    TABLES,
)
from benchmarks.analyses.surveys import SURVEYS
from benchmarks.analyses.tables import FOLDED, PAIRS
from benchmarks.cells import Cell

Lines = dict[tuple[str, float], dict[str, dict[str, float]]]
COLUMNS = {
    "private": "Gramercy, private constants",
    "one stage": "Gramercy, private constants, one stage",
    "declared": "Gramercy, bounds",
    "raw": "least squares, raw matrix",
    "denoised": "least squares, denoised matrix",
    "AdaSSP, bounds": "AdaSSP, bounds",
    "AdaSSP, true constants": "AdaSSP, true constants",
    "dp-statsmodels, bounds": "dp-statsmodels, bounds",
    "dp-statsmodels, true constants": "dp-statsmodels, true constants",
    "BinAgg, bounds": "BinAgg, bounds",
    "BinAgg, true constants": "BinAgg, true constants",
}
ONE_REGRESSOR_COLUMNS = {
    "one regressor, private": "Gramercy, private constants",
    "one regressor, pure": "Gramercy, pure",
    "one regressor, OpenDP": "OpenDP, pure",
}
SYNTHETIC_COLUMNS = {
    "synthetic, private": "Gramercy",
    "synthetic, MST": "MST",
    "synthetic, AIM": "AIM",
}
COMPONENT_COLUMNS = {
    "components, private": "Gramercy, private constants",
    "components, pure": "Gramercy, pure",
    "components, OpenDP": "OpenDP, pure",
}
_FORMS = {
    "private": ("private", "regression"),
    "one stage": ("private", "one stage"),
    "declared": ("declared", "regression"),
    "raw": ("private", "raw"),
    "denoised": ("private", "denoised"),
}


def regression_lines(results: Mapping[Cell, Result]) -> Lines:
    """The scores of regressions by the keys of `COLUMNS`."""
    found: Lines = {}
    for place in product(TABLES, EPSILONS):
        here = {}
        for key in COLUMNS:
            method, form = _FORMS.get(key, (key, None))
            result = results.get(Cell(*place, method))
            if result is not None and (form is None or form in result.scores):
                here[key] = result.scores[form] if form else _only(result)
        if here:
            found[place] = here
    return found


def component_lines(results: Mapping[Cell, Result]) -> Lines:
    """The scores of components by the keys of `COMPONENT_COLUMNS`; none where it was too slow."""
    return _lines(
        results, COMPONENT_TABLES, COMPONENT_EPSILONS, COMPONENT_COLUMNS, ("lost", "first", "share")
    )


def one_regressor_lines(results: Mapping[Cell, Result]) -> Lines:
    """The scores of regressions on one regressor by the keys of `ONE_REGRESSOR_COLUMNS`."""
    found = _lines(results, PAIRS, EPSILONS, ONE_REGRESSOR_COLUMNS, ("error", "loss"))
    for place, here in found.items():
        result = results.get(Cell(*place, "one regressor, private"))
        if result is not None:
            here["one regressor, private"] = result.scores["regression"]
    return found


def synthetic_lines(results: Mapping[Cell, Result]) -> Lines:
    """The scores of synthetic rows by the keys of `SYNTHETIC_COLUMNS`."""
    names = ("marginals", "spikes", "correlations", "error", "loss")
    return _lines(results, SURVEYS, EPSILONS, SYNTHETIC_COLUMNS, names)


def fold_lines(results: Mapping[Cell, Result]) -> Lines:
    """The scores with folds and without, by ``folds`` and ``no folds``."""
    places = product(FOLDED, FOLDED_EPSILONS)
    measured = {place: results.get(Cell(*place, "folds")) for place in places}
    return {place: result.scores for place, result in measured.items() if result is not None}


def _lines(
    results: Mapping[Cell, Result],
    tables: Iterable[str],
    epsilons: Iterable[float],
    methods: Iterable[str],
    names: tuple[str, ...],
) -> Lines:
    """The best of each score over the forms of a method, wherever it was measured."""
    found: Lines = {}
    for place in product(tables, epsilons):
        measured = {key: results.get(Cell(*place, key)) for key in methods}
        here = {
            key: _best(result, *names)
            for key, result in measured.items()
            if result is not None and result.scores
        }
        if here:
            found[place] = here
    return found


def _only(result: Result) -> dict[str, float]:
    """All scores of a method of one form; else the best error and loss."""
    if len(result.scores) > 1:
        return _best(result, "error", "loss")
    (scores,) = result.scores.values()
    return scores


def _best(result: Result, *names: str) -> dict[str, float]:
    """The smallest of each score over the forms; only those that were measured."""
    scores = list(result.scores.values())
    return {name: min(each[name] for each in scores) for name in names if name in scores[0]}


def number(value: float | None, percent: bool = False) -> str:
    """A score with two digits; empty if there is none."""
    if value is None or np.isnan(value):
        return ""
    return f"{value:.0%}" if percent else f"{value:.2g}"


def better(lines: Lines, ours: str, theirs: str, names: Sequence[str]) -> Iterator[str]:
    """Cells in which the second method has a smaller score, with the names of these scores."""
    for (name, epsilon), here in lines.items():
        if ours in here and theirs in here:
            both = here[theirs].keys() & here[ours].keys()
            found = [of for of in names if of in both and here[theirs][of] < here[ours][of]]
            if found:
                yield f"{name} at epsilon {epsilon:g} ({', '.join(found)})"
