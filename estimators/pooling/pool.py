"""Several releases as one: their matrices in common units, added up with weights.

Releases of the same rows share the sampling error, so weights are inverse to the variance of the
noise. Releases of different rows are weighted inverse to the variance of noise and sampling
together, for tables from one population. See `estimators.pooling.common_units`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gramercy.estimators.missing_cells import presence
from gramercy.estimators.noise.denoise import project
from gramercy.estimators.noise.nearest_metric import denoise_in_metric
from gramercy.estimators.pooling.agreement import tables
from gramercy.estimators.pooling.common_units import (
    CommonUnits,
    MatrixMap,
    matrix_map,
    noise_terms,
    sampling_errors,
    shares_present,
    typical_error,
    uncorrelated_units,
    weights,
)
from gramercy.estimators.uncertainty.moment_errors import has_intercept
from gramercy.schemas.evidence import (
    Evidence,
    Fold,
    NoiseTerm,
    PooledEvidence,
    PooledRows,
    PoolPart,
    ReleaseEvidence,
    noise_sum,
)
from gramercy.schemas.facts import ColumnFacts

Array = NDArray[np.float64]


def pool(
    releases: Sequence[ReleaseEvidence], rows: PooledRows | None, *, units_of_first: bool = False
) -> Evidence:
    """The evidence of several releases together, with their weights and errors in `parts`.

    `releases`, `rows`: as accepted by `check_pool`. `units_of_first`: whether the matrix has the
    columns' order, centres and scales of the first release; otherwise, of one with a large weight,
    whose noise denoising then describes best.
    """
    first = 0 if units_of_first else None
    weights, of_table, names = np.zeros(len(releases)), list[Evidence](), list[str]()
    of_tables = tables([(each.name, each.facts) for each in releases], rows)
    for indices in of_tables:
        own = [releases[k] for k in indices]
        evidence, weights[indices] = _pooled(
            [each.evidence for each in own], [each.name for each in own], True, first
        )
        of_table.append(evidence)
        names.append(own[0].name if len(own) == 1 else "")
    together, of_evidences = _pooled(of_table, names, False, first)
    for indices, weight in zip(of_tables, of_evidences, strict=True):
        weights[indices] *= weight
    return replace(together, parts=_parts(releases, weights, together))


def pooled(
    evidences: Sequence[Evidence], *, same_rows: bool, units_of: int | None = None
) -> tuple[Evidence, Array]:
    """The evidence of several releases together.

    `evidences`: two or more releases that agree in what `estimators.pooling.agreement` checks.
    `same_rows`: whether they are of the same rows; otherwise, of rows that are all different.
    `units_of`: index of the release whose columns' order, centres and scales the pool has; default:
    that of the release with the largest weight. Returns the evidence, and the weights of the
    releases; shape (k,).

    Of the same rows, `rows` is the average number, which may be noisy. Of different rows it is
    1 / sum(w_a^2 / n_a), which gives the sampling error of the weighted average. It is the sum of
    all rows where noise is negligible.

    The matrix and its noise are exact for columns without missing cells. Where releases have
    different shares of missing cells, the noise of diagonal entries is that of first order in the
    differences. If a release publishes which cells are missing together, its matrix is taken as if
    they were missing independently.

    Folds of different rows are kept as strata, if every release has them. Two releases of the same
    rows split them differently; then the folds are those of the release with the largest weight,
    moved to the average of the pool. Their noise is that of this release, so standard errors are
    slightly too large.
    """
    own = evidences
    evidences = [_as_independent(each) for each in own]
    share = _weights(evidences, _units(evidences, 0, None), same_rows)
    best = int(np.argmax(share))
    units = _units(evidences, best, share)
    share = _weights(evidences, units, same_rows)
    if units_of is not None:
        units = _units(evidences, units_of, share)
    maps = [matrix_map(each, units) for each in evidences]
    raw = np.sum([w * to(e.raw) for w, to, e in zip(share, maps, evidences, strict=True)], axis=0)
    law, terms = noise_sum(
        [
            term
            for w, to, each in zip(share, maps, evidences, strict=True)
            for term in noise_terms(each, math.sqrt(w) * to.linear)
        ],
        len(raw),
    )
    numbers = np.array([max(each.rows, 1.0) for each in evidences])
    rows = float(share @ numbers if same_rows else 1 / (share**2 / numbers).sum())
    # A public bound on the trace: tr(L S L^T) is at most the squared spectral norm of L tr S.
    norms = [float(np.linalg.norm(to.linear, 2)) ** 2 for to in maps]
    if all(math.isclose(norm, 1.0, rel_tol=1e-12) for norm in norms):
        norms = [1.0] * len(norms)
    bounds = [w * n * each.trace for w, n, each in zip(share, norms, evidences, strict=True)]
    trace = float(sum(bounds))
    unit = evidences[0].unit
    relative = [w * each.rows_sd / n for w, each, n in zip(share, evidences, numbers, strict=True)]
    fold_sets = _same_folds if same_rows else _strata
    return (
        Evidence(
            raw,
            denoise_in_metric(raw, law, terms, trace, rows, unit=unit),
            law,
            rows,
            units.names,
            units.columns,
            unit,
            fold_sets(evidences, maps, share, raw, rows),
            trace,
            next((e.divisor for e in evidences if e.divisor != "public"), "public"),
            rows * math.hypot(*relative),
            None if evidences[0].radius is None else units.radius,
            tuple(units.present.tolist()) if any(e.present for e in evidences) else (),
            evidences[best].histograms if same_rows else (),
            terms,
            signs=tuple(n for n in units.names if any(n in each.signs for each in evidences)),
            rows_each=float(share @ [each.rows_each for each in evidences]),
            persons=evidences[0].persons,
            bounds=_declared_bounds(evidences, units.names),
            pooled=tuple(map(PooledEvidence, own, share.tolist())),
            same_rows=same_rows,
        ),
        share,
    )


def _as_independent(evidence: Evidence) -> Evidence:
    """A release whose matrices are as if cells were missing independently.

    Which cells are missing together differs from table to table, and the pool does not say it.
    """
    shares = presence(evidence, shares_present(evidence)[1:])
    if shares is None:
        return evidence
    return replace(
        evidence,
        raw=shares.as_independent(evidence.raw),
        repaired=project(shares.as_independent(evidence.repaired), np.inf),
        folds=tuple(
            replace(each, moment=shares.as_independent(each.moment)) for each in evidence.folds
        ),
    )


def _units(evidences: Sequence[Evidence], first: int, share: Array | None) -> CommonUnits:
    """The units of one release, with the average shares of cells that are present."""
    reference = evidences[first]
    shares = []
    for each in evidences:
        index = {name: i for i, name in enumerate(each.names)}
        shares.append(shares_present(each)[[index[name] for name in reference.names]])
    present = np.average(shares, axis=0, weights=share)
    columns = tuple(
        _widest(column, evidences) if isinstance(column, ColumnFacts) else column
        for column in reference.columns
    )
    return CommonUnits(reference.names, columns, present, reference.radius or 1.0)


def _widest(column: ColumnFacts, evidences: Sequence[Evidence]) -> ColumnFacts:
    """The column with the bounds of all releases."""
    same = [c for e in evidences for c in e.columns if c is not None and c.name == column.name]
    numeric = [each for each in same if isinstance(each, ColumnFacts)]
    lower, upper = min(each.lower for each in numeric), max(each.upper for each in numeric)
    return column.model_copy(update={"lower": lower, "upper": upper})


def _declared_bounds(
    evidences: Sequence[Evidence], names: Sequence[str]
) -> tuple[tuple[float, float] | None, ...]:
    """The bounds of each column that all releases declare, as wide as any of them."""
    of_releases = [dict(zip(each.names, each.bounds, strict=False)) for each in evidences]
    result: list[tuple[float, float] | None] = []
    for name in names:
        declared = [limits for each in of_releases if (limits := each.get(name)) is not None]
        low, high = zip(*declared, strict=True) if len(declared) == len(evidences) else ((), ())
        result.append((min(low), max(high)) if low else None)
    return tuple(result)


def _weights(evidences: Sequence[Evidence], units: CommonUnits, same_rows: bool) -> Array:
    maps = [matrix_map(each, units) for each in evidences]
    matrices = [to(each.repaired) for to, each in zip(maps, evidences, strict=True)]
    terms = [noise_terms(each, to.linear) for each, to in zip(evidences, maps, strict=True)]
    own = uncorrelated_units(matrices, terms)
    variances = [
        float(sum(NoiseTerm(term.law, own @ term.linear).variance.sum() for term in noise))
        for noise in terms
    ]
    if not same_rows:
        numbers = [max(each.rows, 1.0) for each in evidences]
        per_row = sampling_errors(
            matrices,
            numbers,
            unit=evidences[0].unit,
            intercept=bool(units.columns) and units.columns[0] is None,
        )
        of_row = float(np.maximum(per_row.transformed(own).variance(len(own)), 0.0).sum())
        variances = [v + of_row / n for v, n in zip(variances, numbers, strict=True)]
    return weights(variances)


def _strata(
    evidences: Sequence[Evidence], maps: Sequence[MatrixMap], share: Array, raw: Array, rows: float
) -> tuple[Fold, ...]:
    """The folds of all releases, each of which is a stratum; empty if a release has no folds."""
    if not all(each.folds for each in evidences):
        return ()
    folds: list[Fold] = []
    for w, to, each in zip(share, maps, evidences, strict=True):
        total = sum(fold.rows for fold in each.folds)
        offset = 1 + max((fold.stratum for fold in folds), default=-1)
        folds += [
            Fold(to(fold.moment), w * rows * fold.rows / total, offset + fold.stratum)
            for fold in each.folds
        ]
    return tuple(folds)


def _same_folds(
    evidences: Sequence[Evidence], maps: Sequence[MatrixMap], share: Array, raw: Array, rows: float
) -> tuple[Fold, ...]:
    """The folds of the release with the largest weight that has folds, about the pool's matrix."""
    having = [k for k, each in enumerate(evidences) if each.folds]
    if not having:
        return ()
    best = max(having, key=lambda k: float(share[k]))
    folds, to = evidences[best].folds, maps[best]
    total = sum(fold.rows for fold in folds)
    mean = to(sum((fold.moment * fold.rows for fold in folds), np.zeros_like(raw)) / total)
    return tuple(replace(fold, moment=raw + to(fold.moment) - mean) for fold in folds)


def _pooled(
    evidences: Sequence[Evidence], names: Sequence[str], same_rows: bool, units_of: int | None
) -> tuple[Evidence, Array]:
    """`pooled`, with the names of the releases; also of a single release."""
    if len(evidences) == 1:
        return evidences[0], np.ones(1)
    together, share = pooled(evidences, same_rows=same_rows, units_of=units_of)
    parts = zip(together.pooled, names, strict=True)
    named = tuple(replace(each, name=name) for each, name in parts)
    return replace(together, pooled=named), share


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
    per_row = sampling_errors(
        [evidence.repaired],
        [evidence.rows],
        unit=evidence.unit,
        intercept=has_intercept(evidence),
    )
    variance = np.maximum(per_row.variance(len(evidence.raw)), 0.0)
    return typical_error(variance / max(evidence.rows, 1.0))
