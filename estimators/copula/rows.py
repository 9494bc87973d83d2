"""Synthetic rows, and how far they differ from the release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.copula.distributions import hermite_coefficients
from gramercy.estimators.copula.latent import Latent, latent_variables
from gramercy.estimators.copula.released import Category, Number, ReleasedColumns, released_columns
from gramercy.estimators.noise.draws import Stream, stream
from gramercy.schemas import families
from gramercy.schemas.column import level_names
from gramercy.schemas.evidence import Evidence

Array = NDArray[np.float64]

_BATCH = 1 << 15  # rows drawn at a time
_MISSING_SEED = 20160302  # of a second public stream, so that missing cells change no other cell
_MOST_PAIRS = 20_000  # of a comparison


@dataclass(frozen=True)
class Copula:
    """A Gaussian copula of the columns of a table."""

    released: ReleasedColumns  # distributions and correlations of the release
    latent: Latent  # the variables behind them

    @classmethod
    def of(cls, evidence: Evidence) -> Copula:
        """The copula of a release."""
        released = released_columns(evidence)
        return cls(released, latent_variables(released))

    def draw(self, rows: int, missing: bool = True, integers: Sequence[str] = ()) -> pd.DataFrame:
        """Synthetic rows from a public seed; more rows start with the same ones.

        `rows`: positive. `missing`: whether cells are missing, with the published shares and
        independently of all others. `integers`: numeric columns whose cells are rounded to whole
        numbers. Returns the columns of the table: numbers, and levels as the contract declares
        them. Missing cells, and cells of no declared level, are missing values. Raises RequestError
        if `rows` is not positive, or `integers` has other than numeric columns.
        """
        if rows < 1:
            raise families.ANALYSIS("The number of synthetic rows must be at least 1.")
        columns = self.latent.columns
        check_numeric(integers, [c.facts.name for c in columns if isinstance(c, Number)])
        source, gaps, root = stream(), Stream(_MISSING_SEED), self.latent.root
        slices = self.latent.slices
        batches = []
        for start in range(0, rows, _BATCH):
            size = min(_BATCH, rows - start)
            latent = source.standard_normal((size, len(root))) @ root
            hidden = gaps.random_sample((size, len(columns)))
            batches.append(
                {
                    column.facts.name: _cells(column, latent[:, own], hidden[:, k], missing)
                    for k, (column, own) in enumerate(zip(columns, slices, strict=True))
                }
            )
        table = {name: np.concatenate([each[name] for each in batches]) for name in batches[0]}
        for name in integers:
            table[name] = np.rint(table[name])
        return pd.DataFrame(table)


def check_numeric(wanted: Sequence[str], numeric: Sequence[str]) -> None:
    """Check that all wanted columns are numeric.

    Raises RequestError with the numeric columns, those most similar to a wrong name first.
    """
    if unknown := tuple(name for name in wanted if name not in numeric):
        raise families.ANALYSIS(
            "'integers' names columns that are not numeric: {unknown}.",
            "Numeric columns, most similar first: {known}.",
            unknown=unknown,
            known=most_similar_first(unknown[0], numeric),
        )


def _cells(
    column: Number | Category, latent: Array, hidden: Array, missing: bool
) -> NDArray[np.generic]:
    if isinstance(column, Number):
        cells = column.marginal.values(latent[:, 0])
        return np.where(hidden < column.missing, np.nan, cells) if missing else cells
    levels: list[object] = list(column.facts.levels)
    texts = isinstance(levels[0], str)
    labels = np.array([*levels, None if texts else np.nan], dtype=object if texts else float)
    return labels[column.choice.chosen(latent)]


def compared_marginals(copula: Copula, rows: pd.DataFrame) -> pd.DataFrame:
    """What each column has in the release, and in synthetic rows.

    Returns ``column``, ``quantity`` (``mean``, ``standard deviation`` or ``missing``; ``share`` for
    a level, and ``no level``), ``level`` as text, ``release`` and ``synthetic``.
    """
    lines: list[tuple[str, str, str | None, float, float]] = []
    for column in copula.released.columns:
        name = column.facts.name
        cells = rows[name]
        absent = float(cells.isna().mean())
        if isinstance(column, Category):
            shares = column.choice.shares
            for level, text, share in zip(
                column.facts.levels, level_names(column.facts.levels), shares[:-1], strict=True
            ):
                lines.append((name, "share", text, share, float((cells == level).mean())))
            lines.append((name, "no level", None, float(shares[-1]), absent))
            continue
        coefficients = hermite_coefficients(column.marginal)
        mean, deviation = float(coefficients[0]), float(np.sqrt(max(coefficients[-1], 0.0)))
        lines.append((name, "mean", None, mean, float(cells.mean())))
        lines.append((name, "standard deviation", None, deviation, float(cells.std(ddof=0))))
        lines.append((name, "missing", None, column.missing, absent))
    table = pd.DataFrame(lines, columns=["column", "quantity", "level", "release", "synthetic"])
    return table.astype({"column": "str", "quantity": "str", "level": "str"})


def compared_correlations(copula: Copula, rows: pd.DataFrame) -> pd.DataFrame:
    """Correlations of the release and of synthetic rows.

    Levels have indicators of 0 and 1; two levels of one column are left out.

    Returns ``row``, ``col``, ``release`` and ``synthetic``: the 20,000 pairs of largest difference,
    in the order of the matrix. NaN for synthetic columns of one value.
    """
    names: list[str] = []
    owners: list[int] = []
    parts = []
    for k, column in enumerate(copula.released.columns):
        cells = rows[column.facts.name]
        if isinstance(column, Number):
            names.append(column.facts.name)
            parts.append(cells.to_numpy(dtype=float)[:, None])
        else:
            names += [f"{column.facts.name}={t}" for t in level_names(column.facts.levels)]
            parts.append(np.column_stack([(cells == x).astype(float) for x in column.facts.levels]))
        owners += [k] * parts[-1].shape[1]
    # Correlations of the rows where both cells are present; NaN for a constant column.
    stacked = np.column_stack(parts)
    present = ~np.isnan(stacked)
    shifted = np.where(present, stacked - np.nanmean(stacked, axis=0), 0.0)
    flags = present.astype(float)
    count = np.maximum(flags.T @ flags, 1.0)
    mean = shifted.T @ flags / count  # of column i, over the rows where column j is present
    square = (shifted**2).T @ flags / count - mean**2
    covariance = shifted.T @ shifted / count - mean * mean.T
    with np.errstate(divide="ignore", invalid="ignore"):
        synthetic: Array = covariance / np.sqrt(square * square.T)
    i, j = np.triu_indices(len(names), 1)
    other = np.array(owners)[i] != np.array(owners)[j]
    i, j = i[other], j[other]
    released = copula.released.correlation
    if i.size > _MOST_PAIRS:
        difference = np.nan_to_num(np.abs(released - synthetic)[i, j])
        kept = np.sort(np.argsort(-difference, kind="stable")[:_MOST_PAIRS])
        i, j = i[kept], j[kept]
    labels = np.array(names, dtype=object)
    table = pd.DataFrame(
        {
            "row": labels[i],
            "col": labels[j],
            "release": released[i, j],
            "synthetic": synthetic[i, j],
        }
    )
    return table.astype({"row": "str", "col": "str"})
