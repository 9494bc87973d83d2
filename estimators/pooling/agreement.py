"""Which releases can be pooled: the same columns, normalised in the same way."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from gramercy.estimators.pooling.common_units import shares_present
from gramercy.estimators.series_steps import may_share_rows, same_series
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Evidence, PooledRows, ReleaseEvidence
from gramercy.schemas.facts import ColumnFacts, LevelsFacts
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.normalisation import Clip


def _pool_normalisations_differ(first: str, other: str) -> RequestError:
    return families.POOL(
        "'{first}' and '{other}' cannot be pooled: their rows were normalised in different ways.",
        "Pool releases with the same kind of 'normalisation' and the same 'neighbours'.",
        first=first,
        other=other,
    )


def check_pool(releases: Sequence[ReleaseEvidence], rows: PooledRows | None) -> None:
    """Refuse releases that cannot be pooled.

    `rows`: whether all are of the ``same`` rows, or all of ``disjoint`` rows; None: see `tables`.
    Raises RequestError if one of them is given twice, or for the reasons of `tables` and of
    `estimators.pooling.agreement`.
    """
    digests = {each.sha256 for each in releases}
    if len(digests) < max(len(releases), 2):
        raise wordings.pool_too_small(", ".join(each.name for each in releases))
    facts = [(each.name, each.facts) for each in releases]
    tables(facts, rows)
    check_same_kind(facts)
    check_agreement([each.name for each in releases], [each.evidence for each in releases])


def tables(releases: Sequence[tuple[str, ReleaseSpec]], rows: PooledRows | None) -> list[list[int]]:
    """The indices of the releases of each table.

    Raises RequestError if `rows` is needed, because releases are of several versions of one data
    set; or if releases of the same rows state different numbers of rows or persons.
    """
    _check_series(releases)
    of_tables = _tables(releases, rows)
    for first, *others in of_tables:
        name, one = releases[first]
        for other_name, other in (releases[k] for k in others):
            for number in ("rows", "persons"):
                if _number(one, number) != _number(other, number):
                    raise families.POOL(
                        "'{first}' and '{other}' are not of the same rows: {number} differs.",
                        "Use rows='disjoint' for tables without common rows.",
                        first=name,
                        other=other_name,
                        number=number,
                    )
    return of_tables


def _number(facts: ReleaseSpec, number: str) -> int | None:
    """The declared number of rows or persons; of a step, that of all rows so far."""
    if facts.cumulative is not None and number == "rows":
        return facts.public_count
    declared: int | None = getattr(facts.dataset, number)
    return declared


def _check_series(releases: Sequence[tuple[str, ReleaseSpec]]) -> None:
    """Refuse two steps of one cumulative series: their sums have rows and noise in common."""
    for k, (name, one) in enumerate(releases):
        for other_name, other in releases[:k]:
            if same_series(one, other):
                raise families.POOL(
                    "'{first}' and '{other}' cannot be pooled: they are steps of one cumulative "
                    "series, and the later one has all rows of the earlier one.",
                    "Use the later one. The rows of its last steps alone are release.last(13).",
                    first=other_name,
                    other=name,
                )


def _tables(
    releases: Sequence[tuple[str, ReleaseSpec]], rows: PooledRows | None
) -> list[list[int]]:
    if rows == "same":
        return [list(range(len(releases)))]
    if rows == "disjoint":
        return [[k] for k in range(len(releases))]
    of_tables: dict[tuple[str, str, str], list[int]] = {}
    for k, (_, each) in enumerate(releases):
        facts = each.dataset
        of_tables.setdefault((facts.curator, facts.id, facts.version), []).append(k)
    for of_table in of_tables.values():
        for first, other in combinations(of_table, 2):
            # Also of one version: that of a step need not have all of its rows.
            if may_share_rows(releases[first][1], releases[other][1]):
                raise _rows_are_needed(releases[first][0], releases[other][0])
    of_datasets: dict[tuple[str, str], list[int]] = {}
    for (curator, dataset, _), (first, *_others) in of_tables.items():
        versions = of_datasets.setdefault((curator, dataset), [])
        for other in versions:
            periods = releases[other][1].period, releases[first][1].period
            if None in periods or periods[0] == periods[1]:  # a row is in one period only
                raise _rows_are_needed(releases[other][0], releases[first][0])
        versions.append(first)
    return list(of_tables.values())


def _rows_are_needed(first: str, other: str) -> RequestError:
    return families.POOL(
        "'{first}' and '{other}' are of two versions of one data set, or one is a step of a "
        "cumulative series: they may have rows in common.",
        "Say whether they have: rows='same' or rows='disjoint'.",
        first=first,
        other=other,
    )


def check_same_kind(releases: Sequence[tuple[str, ReleaseSpec]]) -> None:
    """Refuse releases that cannot be pooled, as far as facts show that are known before a release.

    Raises RequestError if columns, levels, the intercept, the normalisation or the protected unit
    differ.
    """
    (first, one), *others = releases
    for name, each in others:
        if each.count_key != one.count_key:
            raise families.POOL(
                "'{first}' and '{other}' cannot be pooled: one averages over persons, the other "
                "over rows.",
                "Pool releases that protect the same unit.",
                first=first,
                other=name,
            )
        _check_columns(
            (first, _columns(one.names, one.source_columns)),
            (name, _columns(each.names, each.source_columns)),
        )
        if _normalisation(each) != _normalisation(one):
            raise _pool_normalisations_differ(first, name)


def _normalisation(facts: ReleaseSpec) -> tuple[bool, bool, bool]:
    """Unit rows or not, clipped or not, and divided by its own noisy trace or not."""
    unit = facts.normalisation.unit_rows
    clipped = isinstance(facts.normalisation, Clip)
    return unit, clipped, unit and not facts.neighbours.count_is_public


def check_agreement(names: Sequence[str], evidences: Sequence[Evidence]) -> None:
    """Refuse releases whose matrices cannot be brought to common units.

    `names`: name of each release, for messages. Raises RequestError if columns, levels, the
    intercept or the normalisation differ; if constants differ, where rows were divided by their own
    length or there is no intercept; if noise is on the rows; or if a column has no values in one
    release.
    """
    first, one = names[0], evidences[0]
    for name, each in zip(names, evidences, strict=True):
        _check_columns(
            (first, _columns(one.names, one.columns)), (name, _columns(each.names, each.columns))
        )
        if (one.unit, one.radius is None, one.divisor == "itself") != (
            each.unit,
            each.radius is None,
            each.divisor == "itself",
        ):
            raise _pool_normalisations_differ(first, name)
        linear = one.radius is not None and one.columns[0] is None
        moved = _moved(one, each, linear=linear, centres_only=one.radius is not None)
        if moved:
            raise families.POOL(
                "'{first}' and '{other}' cannot be pooled: their constants of {columns} differ.",
                "Take the constants of the first release: 'scaling: {{from: ...}}' in the "
                "request. Unless they are the scores of ranks, an intercept and 'normalisation: "
                "clip' will do.",
                first=first,
                other=name,
                columns=moved,
            )
        if each.law.cell_variance is not None:
            raise wordings.pool_of_rows(name)
        empty = [c for c, x in zip(each.names, shares_present(each), strict=True) if not x > 0]
        if empty:
            raise families.POOL(
                "'{release}' cannot be pooled: it has no values in the columns {columns}.",
                "Leave this release out.",
                release=name,
                columns=tuple(empty),
            )


def _columns(
    names: Sequence[str], columns: Sequence[ColumnFacts | LevelsFacts | None]
) -> dict[str, str]:
    """Name and kind of every matrix column."""
    kinds = {ColumnFacts: "numeric", LevelsFacts: "level", type(None): "intercept"}
    return {name: kinds[type(column)] for name, column in zip(names, columns, strict=True)}


def _check_columns(one: tuple[str, dict[str, str]], other: tuple[str, dict[str, str]]) -> None:
    """Refuse two releases, each with its name, if names or kinds of columns differ."""
    different = sorted(set(one[1].items()) ^ set(other[1].items()))
    if different:
        columns = tuple(dict.fromkeys(column for column, _ in different))
        raise families.POOL(
            "'{first}' and '{other}' cannot be pooled: they differ in the columns {columns}.",
            "Pool releases with the same names, kinds and levels of all columns, and with the "
            "intercept in all of them or in none.",
            first=one[0],
            other=other[0],
            columns=columns,
        )


def _moved(one: Evidence, other: Evidence, *, linear: bool, centres_only: bool) -> tuple[str, ...]:
    """Numeric columns with other constants in the second release, of those that matter.

    Units can be changed linearly; not those of another function of the cells, such as ranks by
    another histogram.
    """
    facts = {c.name: c for c in other.columns if isinstance(c, ColumnFacts)}

    def constants(column: ColumnFacts) -> tuple[float | str | None, ...]:
        function = column.derived.transform if column.derived else None
        if linear:
            return (function,)
        if centres_only:
            return function, column.centre
        return function, column.centre, column.scale, column.lower, column.upper

    numeric = [column for column in one.columns if isinstance(column, ColumnFacts)]
    return tuple(c.name for c in numeric if constants(c) != constants(facts[c.name]))
