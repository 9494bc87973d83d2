"""The methods side by side, for every table and epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from benchmarks.analyses.cells import Cell, Result
from benchmarks.analyses.methods import COMPONENT_EPSILONS, COMPONENT_TABLES, EPSILONS, TABLES

Lines = dict[tuple[str, float], dict[str, dict[str, float]]]
COLUMNS = {
    "private": "Gramercy, private constants",
    "declared": "Gramercy, bounds",
    "raw": "least squares, raw matrix",
    "denoised": "least squares, denoised matrix",
    "AdaSSP, bounds": "AdaSSP, bounds",
    "AdaSSP, true constants": "AdaSSP, true constants",
}
COMPONENT_COLUMNS = {
    "components, private": "Gramercy, private constants",
    "components, pure": "Gramercy, pure",
    "components, OpenDP": "OpenDP, pure",
}
_FORMS = {
    "private": ("private", "regression"),
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
            if result is not None:
                here[key] = result.scores[form] if form else _best(result, "error", "loss")
        if here:
            found[place] = here
    return found


def component_lines(results: Mapping[Cell, Result]) -> Lines:
    """The scores of components by the keys of `COMPONENT_COLUMNS`; none where it was too slow."""
    found: Lines = {}
    for place in product(COMPONENT_TABLES, COMPONENT_EPSILONS):
        measured = {key: results.get(Cell(*place, key)) for key in COMPONENT_COLUMNS}
        here = {
            key: _best(result, "lost", "first", "share")
            for key, result in measured.items()
            if result is not None and result.scores
        }
        if here:
            found[place] = here
    return found


def _best(result: Result, *names: str) -> dict[str, float]:
    """The smallest of each score over the forms."""
    return {name: min(each[name] for each in result.scores.values()) for name in names}
