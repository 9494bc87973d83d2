"""Pool releases by their facts: which of them are of one table, and the evidence of all together.

`gramercy.pool` and the estimator ``pool`` both follow these rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.pooling.agreement import check_agreement, check_same_kind
from gramercy.estimators.pooling.common_units import CommonUnits, matrix_map, shares_present
from gramercy.estimators.pooling.noise_sum import noise_terms
from gramercy.estimators.pooling.pool import pooled
from gramercy.estimators.pooling.weights import sampling_variance, typical_error
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence, PooledRows, PoolPart, ReleaseEvidence
from gramercy.schemas.manifest import ReleaseSpec

Array = NDArray[np.float64]


def check_pool(releases: Sequence[ReleaseEvidence], rows: PooledRows | None) -> None:
    """Refuse releases that cannot be pooled.

    Parameters
    ----------
    releases
        The releases of the pool.
    rows
        Whether all are of the ``same`` rows, or all of ``disjoint`` rows; None: see `tables`.

    Raises
    ------
    RequestError
        If one of them is given twice, or for the reasons of `tables` and of
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

    Parameters
    ----------
    releases
        Name and facts of each release.
    rows
        See `check_pool`. If None, releases with one curator, data set and version are of the same
        rows; those of different periods of a data set have no row in common, and other data sets
        or curators are taken to share none.

    Raises
    ------
    RequestError
        If `rows` is needed, because releases are of several versions of one data set; or if
        releases of the same rows state different numbers of rows or persons.
    """
    of_tables = _tables(releases, rows)
    for first, *others in of_tables:
        name, one = releases[first]
        for other_name, other in (releases[k] for k in others):
            for number in ("rows", "persons"):
                if getattr(one.dataset, number) != getattr(other.dataset, number):
                    raise families.POOL(
                        "'{first}' and '{other}' are not of the same rows: {number} differs.",
                        "Use rows='disjoint' for tables without common rows.",
                        first=name,
                        other=other_name,
                        number=number,
                    )
    return of_tables


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
    of_datasets: dict[tuple[str, str], list[int]] = {}
    for (curator, dataset, _), (first, *_others) in of_tables.items():
        versions = of_datasets.setdefault((curator, dataset), [])
        for other in versions:
            if not _periods_differ(releases[other][1], releases[first][1]):
                raise families.POOL(
                    "'{first}' and '{other}' are of two versions of one data set, which may have "
                    "rows in common.",
                    "Say whether they have: rows='same' or rows='disjoint'.",
                    first=releases[other][0],
                    other=releases[first][0],
                )
        versions.append(first)
    return list(of_tables.values())


def _periods_differ(one: ReleaseSpec, other: ReleaseSpec) -> bool:
    """Whether two releases are of two periods of a data set: a row is in one period only."""
    return one.period is not None and other.period is not None and one.period != other.period


def pool(
    releases: Sequence[ReleaseEvidence], rows: PooledRows | None, *, units_of_first: bool = False
) -> Evidence:
    """The evidence of several releases together, with their weights and errors in `parts`.

    Parameters
    ----------
    releases, rows
        As accepted by `check_pool`.
    units_of_first
        Whether the matrix has the columns' order, centres and scales of the first release;
        otherwise, of one with a large weight, whose noise denoising then describes best.
    """
    first = 0 if units_of_first else None
    weights, evidences = np.zeros(len(releases)), list[Evidence]()
    of_tables = tables([(each.name, each.facts) for each in releases], rows)
    for indices in of_tables:
        evidence, weights[indices] = _pooled([releases[k].evidence for k in indices], True, first)
        evidences.append(evidence)
    together, of_evidences = _pooled(evidences, False, first)
    for indices, weight in zip(of_tables, of_evidences, strict=True):
        weights[indices] *= weight
    return replace(together, parts=_parts(releases, weights, together))


def _pooled(
    evidences: Sequence[Evidence], same_rows: bool, units_of: int | None
) -> tuple[Evidence, Array]:
    """`pooled`, also of a single release."""
    if len(evidences) == 1:
        return evidences[0], np.ones(1)
    return pooled(evidences, same_rows=same_rows, units_of=units_of)


def _parts(
    releases: Sequence[ReleaseEvidence], weights: Array, together: Evidence
) -> tuple[PoolPart, ...]:
    """The weight of each release, and its errors in the units of the pool."""
    present, radius = shares_present(together), together.radius or 1.0
    units = CommonUnits(together.names, together.columns, present, radius)
    per_row = typical_sampling_error(together) ** 2 * max(together.rows, 1.0)
    parts = []
    for each, weight in zip(releases, weights.tolist(), strict=True):
        linear = matrix_map(each.evidence, units).linear
        variances = [term.variance for term in noise_terms(each.evidence, linear)]
        noise = typical_error(np.sum(variances, axis=0)) if variances else 0.0
        rows = each.evidence.rows
        sampling = float(np.sqrt(per_row / max(rows, 1.0)))
        parts.append(PoolPart(each.name, weight, rows, noise, sampling))
    return tuple(parts)


def typical_sampling_error(evidence: Evidence) -> float:
    """The typical sampling error of an entry, under the assumed law of the rows; see `weights`."""
    variance = sampling_variance(
        [evidence.repaired],
        [evidence.rows],
        unit=evidence.unit,
        intercept=bool(evidence.columns) and evidence.columns[0] is None,
    )
    return typical_error(variance / max(evidence.rows, 1.0))
