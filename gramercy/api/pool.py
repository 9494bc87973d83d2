"""Several releases as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import pandas as pd

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.notebook import html_table
from gramercy.api.release import Release
from gramercy.estimators.pooling.agreement import check_pool
from gramercy.estimators.pooling.pool import pool
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence, PooledRows
from gramercy.schemas.noise import NoiseLaw


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

    def __init__(self, releases: Sequence[Release], rows: PooledRows | None = None) -> None:
        self.releases = _opened(releases)
        super().__init__(" + ".join(each.id for each in self.releases))
        self._rows = rows
        for release in self.releases:
            if release.withdrawn is not None:
                raise wordings.pool_of_withdrawn(release.id, release.withdrawn)
            release._needs_second_moment()
        check_pool([each.release_evidence for each in self.releases], rows)

    @cached_property
    def evidence(self) -> Evidence:
        """The input of estimators, in the units of a release with a large weight."""
        return pool([each.release_evidence for each in self.releases], self._rows)

    @property
    def weights(self) -> pd.Series:
        """The weight of each release; they add up to 1."""
        parts = self.evidence.parts
        names = [part.release for part in parts]
        return pd.Series([part.weight for part in parts], names, name="weight")

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


def _opened(releases: object) -> tuple[Release, ...]:
    """The releases of a pool; a single one is refused later, as too few."""
    given = releases if isinstance(releases, Iterable) else [releases]
    for each in (opened := tuple(given)):
        if not isinstance(each, Release):
            raise wordings.not_a_release(type(each).__name__)
    return opened
