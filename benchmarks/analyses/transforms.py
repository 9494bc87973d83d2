"""Heavy-tailed columns as they are, and by columns that are derived from them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from scipy.special import ndtri

from benchmarks.analyses.populations import Fitted, Population
from benchmarks.analyses.releases import private_constants
from benchmarks.arrays import Array
from benchmarks.graphs.truths import FOLDER
from benchmarks.statistics.tables import ROWS, Table
from gramercy.estimators.linear.design import Design
from gramercy.estimators.linear.least_squares import regression
from gramercy.estimators.regression import inference
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entries import entries
from gramercy.estimators.uncertainty.table_entries import table_means
from gramercy.schemas.derived import TRANSFORMS, DerivedFacts, Transform
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts
from tests.support.kinds_of_tables import gaussian, round_bounds

Scores = dict[str, dict[str, float]]
_LEVEL = 0.95
_OTHERS = 4  # other predictors of a generated table


def _zeros(rng: np.random.Generator, share: float) -> Array:
    """An amount of which a share is positive; the outcome depends on that and on its logarithm."""
    z = gaussian(rng, ROWS, 1 + _OTHERS)
    positive = z[:, 0] + rng.normal(size=ROWS) > -np.sqrt(2) * ndtri(share)
    size = 7 + 1.5 * (0.5 * z[:, 1] + rng.normal(size=ROWS))
    amount = np.where(positive, np.round(np.exp(size)), 0.0)
    mean = np.where(positive, 1 + 0.5 * (size - 7), 0.0) / np.sqrt(share)
    return _with_outcome(amount, z[:, 1:], 0.5 * mean, rng)


def _lognormal(rng: np.random.Generator) -> Array:
    z = gaussian(rng, ROWS, 1 + _OTHERS)
    return _with_outcome(np.exp(9 + 1.5 * z[:, 0]), z[:, 1:], 0.6 * z[:, 0], rng)


def _pareto(rng: np.random.Generator) -> Array:
    """An amount beyond 1,000, whose variance is infinite: the exponent of its tail is 1.5."""
    z = gaussian(rng, ROWS, 1 + _OTHERS)
    size = rng.exponential(size=ROWS) / 1.5
    return _with_outcome(1000 * np.exp(size), z[:, 1:], 0.9 * size, rng)


def _proportional(rng: np.random.Generator) -> Array:
    """The same amounts; the outcome is proportional to the amount itself."""
    z = gaussian(rng, ROWS, 1 + _OTHERS)
    amount = np.exp(9 + z[:, 0])
    return _with_outcome(amount, z[:, 1:], 0.6 * amount / amount.std(), rng)


def _with_outcome(amount: Array, z: Array, mean: Array, rng: np.random.Generator) -> Array:
    outcome = mean + z @ np.linspace(0.4, -0.2, _OTHERS) + rng.normal(size=ROWS)
    return np.column_stack([amount, z, outcome])


def _credit() -> Array:
    """The last payment, and what else is known of the clients; the outcome is a default."""
    folder = FOLDER / "credit_default_tw"
    cells = pd.read_csv(folder / "data.csv")
    others = cells[["LIMIT_BAL", "AGE", "PAY_0", "PAY_2", "EDUCATION"]].to_numpy(float)
    default = (pd.read_csv(folder / "labels.csv")["default"] == "Y").to_numpy(float)
    return np.column_stack([cells["PAY_AMT1"].to_numpy(float), others, default])


_GENERATED: Mapping[str, tuple[str, Callable[[np.random.Generator], Array]]] = {
    "9 of 10 zero": ("9 of 10 amounts are zero, the others lognormal", lambda r: _zeros(r, 0.1)),
    "half zero": ("half of the amounts are zero, the others lognormal", lambda r: _zeros(r, 0.5)),
    "lognormal amount": ("lognormal, sigma 1.5; the outcome depends on the logarithm", _lognormal),
    "Pareto amount": ("Pareto, exponent 1.5; the outcome depends on the logarithm", _pareto),
    "proportional": (
        "lognormal, sigma 1; the outcome is proportional to the amount itself",
        _proportional,
    ),
}
CREDIT = "credit_default_tw"
TITLES: Mapping[str, str] = {
    **{name: title for name, (title, _) in _GENERATED.items()},
    CREDIT: "the last payment of credit card clients, and whether they default "
    "(Yeh and Lien, 2009)",
}


def available() -> tuple[str, ...]:
    """Names of the tables that can be made here."""
    there = (FOLDER / CREDIT / "labels.csv").exists()
    return (*_GENERATED, *((CREDIT,) if there else ()))


@lru_cache(maxsize=2)
def amounts(name: str) -> Table:
    """The table of that name: an amount, other predictors, and the outcome last.

    Bounds are round numbers around the data. Generated tables have a seed of their own.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    cells = _credit() if name == CREDIT else _GENERATED[name][1](rng)
    return Table(cells, np.array(round_bounds(cells)))


@dataclass(frozen=True)
class Form:
    """What is published of the amount.

    Parameters
    ----------
    columns
        Transforms, of which each is a column; ``x`` is the amount itself.
    predictors
        Those that the regression uses.
    """

    columns: tuple[str, ...]
    predictors: tuple[str, ...]

    @classmethod
    def of(cls, *columns: str) -> Form:
        """A form whose columns are all predictors."""
        return cls(columns, columns)

    def table(self, source: Table) -> FormTable:
        """The published columns of the amount, then the other columns; numbers to be ranked."""
        assert source.bounds is not None
        own = self._published(source.cells), self._published(source.bounds)
        return FormTable(*own, self.columns)

    def _published(self, cells: Array) -> Array:
        x = cells[:, 0]
        own = [x if each == "x" else TRANSFORMS[each].apply(x) for each in self.columns]
        return np.column_stack([*own, cells[:, 1:]])


@dataclass(frozen=True)
class FormTable(Table):
    """The table of a form, whose first columns are functions of the amount."""

    transforms: tuple[str, ...]

    @property
    def columns(self) -> tuple[ColumnFacts, ...]:
        found = list(super().columns)
        for k, transform in enumerate(self.transforms):
            if transform == "rank":
                derived = DerivedFacts(inputs=("x",), transform=transform)
                found[k] = found[k].model_copy(update={"derived": derived})
        return tuple(found)

    def published(self, evidence: Evidence) -> Table:
        """The same with scores in place of ranked numbers, by the histograms of a release."""
        cells = self.cells.copy()
        for column, facts in zip(cells.T, evidence.columns[1:], strict=True):
            column[:] = facts.published(column)  # type: ignore[union-attr]
        return Table(cells, None)


FORMS: Mapping[str, Form] = {
    "x": Form.of("x"),
    "sqrt": Form.of("sqrt"),
    "asinh": Form.of("asinh"),
    "log1p": Form.of("log1p"),
    "indicator and log1p": Form.of("log1p", "is not zero"),
    "x and log1p": Form(("x", "log1p"), ("log1p",)),
}


RANKS: Mapping[str, Form] = {"rank": Form.of("rank")}


def of_forms(
    source: Table,
    epsilon: float,
    rng: np.random.Generator,
    times: int,
    forms: Mapping[str, Form] = FORMS,
) -> Scores:
    """Scores of every form over releases of samples of the table.

    ``best``: R squared of least squares in the population, without privacy; ``r_squared`` that of
    predictions from a release, on average. ``error``, ``coverage`` and ``known``: of the
    standardised coefficients of the amount. ``correlation`` and ``correlation coverage``: error of
    its correlation with the outcome, and coverage of its interval. ``mean`` and ``mean coverage``:
    relative error of the mean of the column, transformed back, and coverage. ``others``: error of
    the correlations of the other columns. Errors are root mean squares.
    """
    found: dict[str, list[dict[str, Array]]] = {name: [] for name in forms}
    for _ in range(times):
        drawn = rng.integers(0, source.n, size=source.n)
        for name, form in forms.items():
            table = form.table(source)
            sample = replace(table, cells=table.cells[drawn])
            evidence = private_constants(sample, epsilon, rng).release(rng)
            population = Population(table.published(evidence))
            found[name].append(_measured(form, population, evidence))
    return {name: _summary(each) for name, each in found.items()}


of_ranks = partial(of_forms, forms=RANKS)


def _measured(form: Form, population: Population, evidence: Evidence) -> dict[str, Array]:
    """What one release gives of each score."""
    table, k = population.table, len(form.columns)
    used = [*map(form.columns.index, form.predictors), *range(k, table.p - 1)]
    chosen = Population(Table(table.cells[:, [*used, table.p - 1]], None))
    fit = _fit(evidence, used)
    own = slice(1, 1 + len(form.predictors))
    deviations = chosen.table.cells.std(axis=0)
    off = (fit.coefficients - chosen.coefficients)[own] * deviations[: own.stop - 1]
    lower, upper = (np.full(own.stop - 1, np.nan), np.full(own.stop - 1, np.nan))
    if fit.lower is not None and fit.upper is not None:
        lower, upper = fit.lower[: own.stop - 1], fit.upper[: own.stop - 1]
    truth = chosen.coefficients[own]
    main = form.columns.index(form.predictors[0])
    return {
        "best": np.array(chosen.r_squared),
        "r_squared": np.array(chosen.r_squared - chosen.scores([fit])["loss"]),
        "error": off / deviations[-1],
        "known": np.isfinite(lower).astype(np.float64),
        "coverage": _covered(truth, lower, upper),
        **_correlations(evidence, table, main, k),
        **_means(evidence, table, main, form.predictors[0]),
    }


def _fit(evidence: Evidence, used: Sequence[int]) -> Fitted:
    outcome = len(evidence.raw) - 1
    result = regression(evidence, Design(outcome, tuple(1 + j for j in used)))
    if result is None:
        centre = evidence.columns[outcome].centre  # type: ignore[union-attr]
        return Fitted(np.append(centre, np.zeros(len(used))))
    table = inference(result, ["Intercept", *(evidence.names[1 + j] for j in used)], _LEVEL)
    lower, upper = (table[name].to_numpy(dtype=np.float64)[1:] for name in ("lower", "upper"))
    return Fitted(result.fitted, lower, upper)


def _correlations(evidence: Evidence, table: Table, main: int, k: int) -> dict[str, Array]:
    found, exact = entries(evidence, "correlation"), table.correlations
    lower, upper = found.interval(_LEVEL, "population")
    estimate = np.where(found.estimable, found.estimate, np.nan)
    others = np.triu_indices(table.p - k, 1)
    own = main, table.p - 1
    return {
        "correlation": _or_nothing(estimate[own]) - exact[own],
        "correlation coverage": _covered(exact[own], lower[own], upper[own]),
        "others": (_or_nothing(estimate) - exact)[k:, k:][others],
    }


def _means(evidence: Evidence, table: Table, main: int, transform: str) -> dict[str, Array]:
    units = table_units(evidence)
    if units is None:
        return {}
    found, exact = table_means(evidence, units), table.cells[:, main].mean()
    lower, upper = found.interval(_LEVEL, "population")
    function = evidence.columns[1 + main].derived if transform == "rank" else None  # type: ignore[union-attr]
    own = function.function if function else TRANSFORMS.get(transform)
    estimate, truth = _back(own, found.estimate[main]), _back(own, exact)
    return {
        "mean": estimate / truth - 1,
        "mean coverage": _covered(exact, lower[main], upper[main]),
    }


def _back(transform: Transform | None, value: float) -> Array:
    if transform is None:
        return np.array(value)
    back = transform.back(np.array(value))
    assert back is not None
    return back


def _or_nothing(correlations: Array) -> Array:
    """Correlations, with 0 where they are unknown."""
    return np.nan_to_num(correlations)


def _covered(truth: Array | float, lower: Array | float, upper: Array | float) -> Array:
    """1 where an interval covers, NaN where there is none."""
    known = np.isfinite(lower)
    return np.where(known, (lower <= truth) & (truth <= upper), np.nan)


_RATES = ("best", "r_squared", "known", "coverage", "correlation coverage", "mean coverage")


def _summary(found: Sequence[Mapping[str, Array]]) -> dict[str, float]:
    summary = {}
    for name in found[0]:
        values = np.array([each[name] for each in found], dtype=np.float64)
        if np.isnan(values).all():
            continue
        rate = np.nanmean(values) if name in _RATES else np.sqrt(np.nanmean(values**2))
        summary[name] = float(rate)
    return summary
