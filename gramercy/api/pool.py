"""Several releases as one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Literal

import numpy as np
import pandas as pd

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.notebook import html_table
from gramercy.api.release import Release
from gramercy.estimators.pooling.agreement import check_agreement
from gramercy.estimators.pooling.pool import pooled
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.problems import analyses as problems

Rows = Literal["same", "disjoint"]


class PooledRelease(ReleaseAnalyses):
    """Several releases as one, with the matrices and the analyses of a release.

    Parameters
    ----------
    releases, rows
        See `gramercy.pool`.

    Attributes
    ----------
    id
        The names of the releases.
    releases
        The releases.
    """

    def __init__(self, releases: Sequence[Release], rows: Rows | None = None) -> None:
        super().__init__(" + ".join(each.id for each in releases))
        self.releases = tuple(releases)
        for release in self.releases:
            release._needs_second_moment()
        _check_different(self.releases)
        self._tables = _tables(self.releases, rows)
        for table in self._tables:
            _check_same_rows(table)
        _check_protected_units(self.releases)
        check_agreement([r.id for r in self.releases], [r.evidence for r in self.releases])

    @cached_property
    def _pooled(self) -> tuple[Evidence, pd.Series]:
        parts, shares = [], []
        for table in self._tables:
            evidence, own = table[0].evidence, np.ones(1)
            if len(table) > 1:
                evidence, own = pooled([each.evidence for each in table], same_rows=True)
            parts.append(evidence)
            shares.append(pd.Series(own, index=[each.id for each in table]))
        if len(parts) == 1:
            return parts[0], shares[0]
        evidence, of_tables = pooled(parts, same_rows=False)
        return evidence, pd.concat([w * own for w, own in zip(of_tables, shares, strict=True)])

    @property
    def evidence(self) -> Evidence:
        """The input of estimators, in the units of the release with the largest weight."""
        return self._pooled[0]

    @property
    def weights(self) -> pd.Series:
        """The weight of each release; they add up to 1."""
        weights: pd.Series = self._pooled[1].loc[[each.id for each in self.releases]]
        return weights.rename("weight")

    @property
    def noise(self) -> NoiseLaw:
        """The law of the noise, or, if it has `evidence.terms`, its root mean squares."""
        return self.evidence.law

    @property
    def rows(self) -> float:
        """The number of rows that has the sampling error of the pool."""
        return self.evidence.rows

    def _repr_html_(self) -> str:
        weights = pd.DataFrame({"weight": self.weights.round(3)})
        return html_table(weights, f"Pool of {len(self.releases)} releases")

    def __repr__(self) -> str:
        weights = ", ".join(f"{name} ({w:.2g})" for name, w in self.weights.items())
        return f"<PooledRelease of {weights}>"


def _check_different(releases: Sequence[Release]) -> None:
    digests = [each.sha256 for each in releases]
    if len(set(digests)) < max(len(digests), 2):
        raise problems.pool_too_small(", ".join(each.id for each in releases))


def _tables(releases: Sequence[Release], rows: Rows | None) -> list[list[Release]]:
    """The releases of each table."""
    if rows == "same":
        return [list(releases)]
    if rows == "disjoint":
        return [[each] for each in releases]
    tables: dict[tuple[str, ...], list[Release]] = {}
    for each in releases:
        facts = each.manifest.dataset
        tables.setdefault((facts.curator, facts.id, facts.version), []).append(each)
    datasets: dict[tuple[str, ...], list[Release]] = {}
    for key, (first, *_) in tables.items():
        others = datasets.setdefault(key[:2], [])
        for other in others:  # a row is in one period only
            if None in (other.period, first.period) or other.period == first.period:
                raise problems.pool_rows_unknown(other.id, first.id)
        others.append(first)
    return list(tables.values())


def _check_same_rows(table: Sequence[Release]) -> None:
    first = table[0].manifest
    for release in table[1:]:
        facts = release.manifest
        for number in ("rows", "persons"):
            if getattr(first.dataset, number) != getattr(facts.dataset, number):
                raise problems.pool_of_other_rows(table[0].id, release.id, number)


def _check_protected_units(releases: Sequence[Release]) -> None:
    for release in releases:
        if release.manifest.count_key != releases[0].manifest.count_key:
            raise problems.pool_units_differ(releases[0].id, release.id)
