"""Published marginals in a report: a small histogram of every column, shares and quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
from gramercy.common.notation import significant
from gramercy.estimators.derived_columns import BackTransform
from gramercy.estimators.marginals import QUANTILES, Quantile
from gramercy.estimators.released_table import ReleasedTable
from gramercy.schemas.column import level_names
from gramercy.schemas.facts import ColumnFacts, LevelsFacts

Array = NDArray[np.float64]

_MOST_COLUMNS, _MOST_LEVELS = 200, 20  # that a page shows; the file has all
BARS = 32  # of a small histogram
_WIDTH, _HEIGHT = 128, 32
_SIZE = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}"'
_FINEST = 1e-3  # scales; quantiles are not shown more finely
_MOST_DECIMALS, _LARGEST = 6, 1e6  # of numbers without an exponent
_CENTRAL = 0.002  # share of the rows at each end that a histogram leaves out
_REACH = 4.0  # scales around the centre, where bins are narrow


class QuantileText(NamedTuple):
    """A quantile and its interval, with as many digits as the interval deserves."""

    value: str
    lower: str
    upper: str


@dataclass(frozen=True)
class MarginalLine:
    """One column of a report's table of marginals."""

    column: str  # Name of the table column
    bars: Markup  # A small histogram
    missing: str  # Share of missing cells, or of cells of no declared level
    # For a numeric column, the quantiles at `QUANTILES`. Intervals are cut off at the bounds to
    # which cells are clamped
    quantiles: list[QuantileText]
    # For a column of levels, the first levels with their shares; None for a numeric column
    levels: list[str] | None = None
    more_levels: int = 0  # Number of levels that are left out
    # For a derived column, the column in whose units the quantiles are repeated, and these
    in_units_of: str = ""
    back: tuple[QuantileText, ...] = ()


@dataclass(frozen=True)
class MarginalTable:
    """The marginals of a release."""

    lines: list[MarginalLine]  # The first columns
    columns: int  # Number of all columns
    probabilities: tuple[float, ...]  # Those of the quantiles
    sd: float  # Standard deviation of the noise on a count


def marginal_table(release: ReleaseBundle) -> MarginalTable | None:
    """The marginals of a release; None if it does not publish any."""
    marginals, facts = release.marginals, release.manifest
    if not marginals:
        return None
    pairs = list(zip(marginals, facts.columns, strict=True))[:_MOST_COLUMNS]
    known = ReleasedTable(release.evidence)
    lines = [_line(known, column) for _, column in pairs]
    return MarginalTable(lines, len(marginals), QUANTILES, marginals[0].sd)


def _line(known: ReleasedTable, column: ColumnFacts | LevelsFacts) -> MarginalLine:
    if isinstance(column, LevelsFacts):
        shares = known.levels(column)
        parts = list(zip(shares.value, shares.standard_error, strict=True))
        bars, names = _bars(shares.value[:-1]), level_names(column.levels)[:_MOST_LEVELS]
        levels = [
            f"{level}: {_percentage(*each)}" for level, each in zip(names, parts, strict=False)
        ]
        more = len(column.levels) - len(levels)
        return MarginalLine(column.name, bars, _percentage(*parts[-1]), [], levels, more)
    distribution, missing = known.distribution(column.name), known.missing(column.name)
    assert distribution is not None  # noqa: S101
    assert missing is not None  # noqa: S101
    # Counts over equal bins of the central part of the distribution.
    ends = [each.value for each in distribution.quantiles((_CENTRAL, 1 - _CENTRAL))]
    reach = _REACH * column.scale
    low, high = np.clip(ends, column.centre - reach, column.centre + reach)
    edges = np.linspace(low, high if high > low else low + column.scale, BARS + 1)
    bars = _bars(distribution.counts_within(edges))
    quantiles = distribution.quantiles()
    found = [_text(each, column) for each in quantiles]
    line = MarginalLine(
        column.name, bars, _percentage(missing.value, missing.standard_error), found
    )
    back = BackTransform.from_facts(column)
    if back is None or back.of in known.evidence.names:  # which has quantiles of its own
        return line
    texts = tuple(_back_text(each, column, back) for each in quantiles)
    return replace(line, in_units_of=back.of, back=texts)


def _percentage(value: float, error: float) -> str:
    return f"{100 * value:.1f} ± {significant(100 * error, 2)} %"


def _text(quantile: Quantile, column: ColumnFacts) -> QuantileText:
    """A quantile whose interval is cut off at the bounds of the column."""
    value = quantile.value
    lower = min(max(quantile.lower, column.lower), value)
    upper = max(min(quantile.upper, column.upper), value)
    if column.dates is not None:
        return QuantileText(*map(column.dates.in_words, (value, lower, upper)))
    finest = max((upper - lower) / 10, _FINEST * column.scale)
    step = 10.0 ** math.floor(math.log10(finest))
    return QuantileText(*(_rounded(each, step) for each in (value, lower, upper)))


def _back_text(quantile: Quantile, column: ColumnFacts, back: BackTransform) -> QuantileText:
    """A quantile of a derived column in the units of its input."""
    ends = np.clip([quantile.lower, quantile.upper], column.lower, column.upper)
    value, lower, upper = back(np.array([quantile.value, *ends]))
    return QuantileText(*(significant(each, 3) for each in (value, lower, upper)))


def _rounded(number: float, step: float) -> str:
    """A number rounded to a multiple of a power of ten."""
    rounded, decimals = round(number / step) * step, -round(math.log10(step))
    if 0 <= decimals <= _MOST_DECIMALS and abs(rounded) < _LARGEST:
        return f"{rounded:.{decimals}f}".replace("-", "−")
    return significant(rounded, len(str(abs(round(rounded / step)))))


def _bars(heights: Array) -> Markup:
    """Bars as inline SVG."""
    largest = float(heights.max(initial=0.0)) or 1.0
    step = _WIDTH / max(heights.size, 1)
    bars = "".join(
        _bar(k, step, height / largest) for k, height in enumerate(heights) if height > 0
    )
    return Markup(f'<svg class="bars" {_SIZE} fill="var(--accent)" aria-hidden="true">{bars}</svg>')  # noqa: S704


def overlaid_bars(bars: Array, steps: Array) -> Markup:
    """Bars, and other numbers as a stepped line over them, each with the same area."""
    heights = [each / (float(each.sum()) or 1.0) for each in (bars, steps)]
    largest = max(float(each.max(initial=0.0)) for each in heights) or 1.0
    step = _WIDTH / max(bars.size, 1)
    rectangles, line = "", f"M0,{_HEIGHT}"
    for k, (bar, level) in enumerate(zip(*heights, strict=True)):
        rectangles += _bar(k, step, bar / largest)
        line += f"V{_HEIGHT * (1 - level / largest):.1f}H{(k + 1) * step:.1f}"
    path = f'<path d="{line}V{_HEIGHT}" fill="none" stroke="var(--warm)" stroke-width="1.2"/>'
    svg = f'<svg {_SIZE} aria-hidden="true"><g fill="var(--accent)">{rectangles}</g>{path}</svg>'
    return Markup(svg)  # noqa: S704  of numbers only


def _bar(k: int, step: float, height: float) -> str:
    return (
        f'<rect x="{k * step:.1f}" y="{_HEIGHT * (1 - height):.1f}" '
        f'width="{max(step - 0.5, 0.5):.1f}" height="{_HEIGHT * height:.1f}"/>'
    )
