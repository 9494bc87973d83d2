"""Ways to choose centres, scales and the length of rows, at the same exact guarantee."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from benchmarks.arrays import Array
from benchmarks.peers import Peer
from benchmarks.statistics.correlations import (
    about_means,
    about_zero,
    denoised,
    error,
    noisy,
    published,
)
from benchmarks.statistics.tables import Table
from gramercy.mechanisms.accounting.gdp import gdp_mu
from gramercy.scaling.shares import whitening_pays
from gramercy.schemas.evidence import Evidence
from tests.support.private_release import DELTA, clipped_moment, privately_scaled

Errors = dict[str, list[float]]
Draw = Callable[[Table, float, np.random.Generator, int], Errors]
RADII = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0)  # in units of sqrt(p + 1)
EXPERT = "mean, 3"
ONE_STAGE = "one stage"
FORMS = ("", ONE_STAGE)  # of private constants


@dataclass(frozen=True)
class Method:
    """A way to a table's correlations.

    Parameters
    ----------
    title, note
        On the page.
    errors
        Root mean square errors of `times` releases at a given epsilon, by form.
    needs_bounds
        Whether every column must have bounds.
    peer
        The library that it runs; None for Gramercy.
    tables, epsilons
        Those that it is measured on; None for all.
    repetitions
        Number of releases per cell.
    """

    title: str
    note: str
    errors: Draw
    needs_bounds: bool = False
    peer: Peer | None = None
    tables: tuple[str, ...] | None = None
    epsilons: tuple[float, ...] | None = None
    repetitions: int = 8


def _private(table: Table, epsilon: float, rng: np.random.Generator, times: int) -> Errors:
    pairs = [released_pair(table, epsilon, rng) for _ in range(times)]
    return {
        form: [error(published(pair[form]), table.correlations) for pair in pairs if pair]
        for form in FORMS
        if all(pairs)
    } or _declared(table, epsilon, rng, times, intercept=True)


def released_pair(
    table: Table, epsilon: float, rng: np.random.Generator
) -> dict[str, Evidence] | None:
    """Releases in stages and in one stage, from noise of the same seed, by form.

    None if constants are not estimated.
    """
    seed, mu = int(rng.integers(2**62)), gdp_mu(epsilon, DELTA)
    pair = {}
    for form in FORMS:
        stream = np.random.default_rng(seed)
        whitened = form != ONE_STAGE and whitening_pays(table.n, table.p, mu)
        scaled = privately_scaled(table.cells, table.columns, epsilon, stream, whitened=whitened)
        if scaled is None:
            return None
        pair[form] = scaled.release(stream)
    return pair


def _bounds(table: Table, epsilon: float, rng: np.random.Generator, times: int) -> Errors:
    return _declared(table, epsilon, rng, times, intercept=False)


def _declared(
    table: Table, epsilon: float, rng: np.random.Generator, times: int, *, intercept: bool
) -> Errors:
    """The middle and the half width of the bounds, and unit rows."""
    if table.bounds is None:
        return {}
    mu, rows = gdp_mu(epsilon, DELTA), scaled_rows(table.cells, *middle_and_half(table))
    if intercept:
        moment = clipped_moment(rows, None)
        return {"": _about_means(moment, table, table.present, mu, rng, times)}
    moment, sd = clipped_moment(rows[:, 1:], None), 1 / (mu * table.n)
    estimates = (about_zero(denoised(noisy(moment, sd, rng), sd)) for _ in range(times))
    return {"": [error(each, table.correlations) for each in estimates]}


def middle_and_half(table: Table) -> tuple[Array, Array]:
    """The middle and the half width of the declared bounds; shape (p,) each."""
    assert table.bounds is not None
    lower, upper = table.bounds
    return (lower + upper) / 2, (upper - lower) / 2


def _known(table: Table, epsilon: float, rng: np.random.Generator, times: int) -> Errors:
    """True means or medians, true deviations, and each of several lengths of rows."""
    result, mu = {}, gdp_mu(epsilon, DELTA)
    for form, moment in known_constants(table):
        result[form] = _about_means(moment, table, table.present, mu, rng, times)
    return result


def known_constants(table: Table) -> Iterator[tuple[str, Array]]:
    """Second moments of rows in the unit ball, for hand-tuned constants."""
    deviation = np.nanstd(table.cells, axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    for name, centre in (("mean", np.nanmean), ("median", np.nanmedian)):
        rows = scaled_rows(table.cells, centre(table.cells, axis=0), deviation)
        for factor in (*RADII, None):
            radius = None if factor is None else factor * np.sqrt(table.p + 1)
            label = "unit" if factor is None else f"{factor:g}"
            yield f"{name}, {label}", clipped_moment(rows, radius)


def scaled_rows(cells: Array, centre: Array, scale: Array) -> Array:
    """Rows in scaled units with an intercept; missing cells are zero."""
    scaled = np.nan_to_num((cells - centre) / scale)
    return np.hstack([np.ones((len(cells), 1)), scaled])


def _about_means(
    moment: Array, table: Table, present: Array, mu: float, rng: np.random.Generator, times: int
) -> list[float]:
    sd = 1 / (mu * table.n)
    estimates = (about_means(denoised(noisy(moment, sd, rng), sd), present) for _ in range(times))
    return [error(each, table.correlations) for each in estimates]


METHODS: Mapping[str, Method] = {
    "private": Method(
        "private constants",
        "`scaling: private`: constants and a pilot matrix from the same budget; `one stage`: "
        "without the pilot, `stages: 1`",
        _private,
    ),
    "bounds": Method(
        "bounds, unit rows",
        "the middle and half width of the bounds, unit rows, no intercept: the defaults of 0.1.0",
        _bounds,
        needs_bounds=True,
    ),
    "known": Method(
        "hand-tuned",
        "true means or medians and true deviations, with seven lengths of rows; `expert` is true "
        "means with radius 3 sqrt(p + 1), `best` is the most accurate of all 14 in each cell",
        _known,
    ),
}
