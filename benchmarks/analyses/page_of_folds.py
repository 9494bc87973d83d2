"""The section of the results page on regressions with folds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

import numpy as np

from benchmarks.analyses.cells import Result
from benchmarks.analyses.comparing import number
from benchmarks.analyses.lines import Lines, fold_lines
from benchmarks.analyses.methods import FOLDED_EPSILONS, FOLDS
from benchmarks.analyses.tables import FOLDED, MANY
from benchmarks.markdown import table
from benchmarks.method_cells import Cell

_TITLES = ("mean coverage", "smallest", "clipped, mean", "clipped, smallest")
_LOW = 0.85  # coverage of a coefficient that is too small
_FORMS = ("folds", "no folds")
_SHARES = ("coverage", "worst", "clipped coverage", "clipped worst")


def section(results: Mapping[Cell, Result]) -> Iterator[str]:
    """Yield the section."""
    lines = fold_lines(results)
    (method,) = FOLDS.values()
    yield "## Regressions with folds\n"
    yield (
        f"Coverage of 95% intervals of three coefficients, from {method.releases} releases of "
        f"{MANY:,} rows whose errors depend on the regressors: {method.note}. At epsilon 8 folds "
        "are what a plan proposes for such a table; at epsilon 4 the noise of ten folds is below "
        "the sampling error, but not by the factor of three that the proposal asks for. Rows with "
        "more noise are clipped at a smaller radius, so folds add to what clipping changes. "
        "`clipped` figures are as above; `width` is the median in standard deviations.\n"
    )
    yield from _summary(lines)
    for form in _FORMS:
        yield _in_words(lines, form)
    head = [f"{form}: {of}" for form in _FORMS for of in (*_TITLES, "width")]
    body = []
    for (name, epsilon), here in lines.items():
        shown: list[str] = []
        for form in _FORMS:
            scores = here.get(form, {})
            shown += (number(scores.get(of), percent=True) for of in _SHARES)
            shown.append(number(scores.get("width")))
        body.append((name, f"{epsilon:g}", *shown))
    yield from table(("table", "epsilon", *head), body)
    yield "Tables:\n"
    yield from (f"- {name}: {each.title}." for name, each in FOLDED.items())
    yield ""


def _summary(lines: Lines) -> Iterator[str]:
    """Means over the tables, and the smallest coverage of any coefficient."""
    body = []
    for epsilon, form in product(FOLDED_EPSILONS, _FORMS):
        scores = [here[form] for (_, other), here in lines.items() if other == epsilon]
        if scores:
            found = {of: [each[of] for each in scores] for of in (*_SHARES, "width")}
            shown = (
                f"{np.mean(found[of]):.1%}" if of.endswith("coverage") else f"{min(found[of]):.0%}"
                for of in _SHARES
            )
            body.append((f"{epsilon:g}", form, *shown, number(float(np.mean(found["width"])))))
    yield from table(("epsilon", "", *_TITLES, "width"), body)


def _in_words(lines: Lines, form: str) -> str:
    """Where a coefficient is covered too rarely."""
    low = [
        f"{name} at epsilon {epsilon:g} ({here[form][of]:.0%}{why})"
        for of, why in (("worst", ""), ("clipped worst", " of the clipped rows"))
        for (name, epsilon), here in lines.items()
        if here[form].get(of, 1.0) < _LOW
    ]
    title = "With folds" if form == "folds" else "Without folds"
    if low:
        return f"{title}, a coefficient is covered in less than {_LOW:.0%}: {'; '.join(low)}.\n"
    return f"{title}, no coefficient is covered in less than {_LOW:.0%}.\n"
