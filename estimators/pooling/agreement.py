"""Which releases can be pooled: the same columns, normalised in the same way."""

from __future__ import annotations

from collections.abc import Sequence

from gramercy.estimators.pooling.common_units import shares_present
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.problems import analyses as problems


def check_agreement(names: Sequence[str], evidences: Sequence[Evidence]) -> None:
    """Refuse releases whose matrices cannot be brought to common units.

    Parameters
    ----------
    names
        Name of each release, for messages.
    evidences
        What they have published.

    Raises
    ------
    RequestError
        If columns, levels, the intercept or the normalisation differ; if constants differ, where
        rows were divided by their own length or there is no intercept; if noise is on the rows; or
        if a column has no values in one release.
    """
    first, one = names[0], evidences[0]
    for name, each in zip(names, evidences, strict=True):
        different = sorted(set(_columns(one).items()) ^ set(_columns(each).items()))
        if different:
            columns = tuple(dict.fromkeys(column for column, _ in different))
            raise problems.pool_columns_differ(first, name, columns)
        if (one.unit, one.radius is None, one.divisor == "itself") != (
            each.unit,
            each.radius is None,
            each.divisor == "itself",
        ):
            raise problems.pool_normalisations_differ(first, name)
        linear = one.radius is not None and _has_intercept(one)
        moved = () if linear else _moved(one, each, centres_only=one.radius is not None)
        if moved:
            raise problems.pool_constants_differ(first, name, moved)
        if each.law.cell_variance is not None:
            raise problems.pool_of_rows(name)
        empty = [c for c, x in zip(each.names, shares_present(each), strict=True) if not x > 0]
        if empty:
            raise problems.pool_column_empty(name, tuple(empty))


def _columns(evidence: Evidence) -> dict[str, str]:
    """Name and kind of every matrix column."""
    kinds = {ColumnFacts: "numeric", LevelsFacts: "level", type(None): "intercept"}
    pairs = zip(evidence.names, evidence.columns, strict=True)
    return {name: kinds[type(column)] for name, column in pairs}


def _has_intercept(evidence: Evidence) -> bool:
    return evidence.columns[0] is None


def _moved(one: Evidence, other: Evidence, *, centres_only: bool) -> tuple[str, ...]:
    """Numeric columns with other constants in the second release."""
    facts = {c.name: c for c in other.columns if isinstance(c, ColumnFacts)}

    def constants(column: ColumnFacts) -> tuple[float, ...]:
        if centres_only:
            return (column.centre,)
        return column.centre, column.scale, column.lower, column.upper

    numeric = [column for column in one.columns if isinstance(column, ColumnFacts)]
    return tuple(c.name for c in numeric if constants(c) != constants(facts[c.name]))
