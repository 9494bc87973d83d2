"""The pool of a release and others as a sealed estimate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import AfterValidator, BeforeValidator, Field

from gramercy.estimators.caveats import caveats, caveats_table
from gramercy.estimators.estimator import Estimate, Estimator, names_of
from gramercy.estimators.intervals import Level
from gramercy.estimators.pooling.agreement import check_pool, check_same_kind, tables
from gramercy.estimators.pooling.common_units import typical_error
from gramercy.estimators.pooling.pool import pool, typical_sampling_error
from gramercy.estimators.summary_table import SummaryTable
from gramercy.estimators.table_units import table_units
from gramercy.estimators.uncertainty.entries import second_moment
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence, PooledRows, PoolPart, ReleaseEvidence
from gramercy.schemas.manifest import ReleaseSpec

_LABEL = r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"
_NAME = re.compile(f"{_LABEL}/{_LABEL}")


def release_name(name: str) -> str:
    """The name, if it is one of a release; raises InvalidValue."""
    if not _NAME.fullmatch(name):
        raise families.VALUE(
            "'{name}' is not the name of a release.",
            "Write DATASET/RELEASE as 'gramercy list' does, with commas between several.",
            name=name,
        )
    return name


def _names(given: Any) -> Any:
    """As `names_of`; a text may also be in the brackets of a list in a request."""
    return names_of(given.strip("[] ") if isinstance(given, str) else given)


ReleaseNames = Annotated[
    tuple[Annotated[str, AfterValidator(release_name)], ...], BeforeValidator(_names)
]


class PooledReleases(Estimator):
    """``pool``: this release and others together, with smaller errors than each of them.

    Parameters
    ----------
    releases
        Names of the other releases, DATASET/RELEASE: a list, or a text with commas.
    rows
        Whether all releases are of the ``same`` rows, or all of ``disjoint`` rows. By default,
        releases of one version of a data set are of the same rows, and different data sets have no
        row in common.
    level
        Confidence level of the intervals of means and standard deviations.

    Notes
    -----
    See `estimators.pooling`. Matrices have the columns' order, centres, scales and radius of this
    release: ``denoised``, positive semidefinite; ``second_moment``, with the noise; and the
    standard deviations ``noise_error``, of the noise, and ``standard_error``, of noise and sampling
    together, of every entry of ``second_moment``.

    Tables: ``releases`` has the weight of each release, its number of rows, and its typical noise
    and sampling error in an entry; ``tuning`` has those of the pool; ``caveats``, if there are
    some, says whether the tables differ, among others. If the releases have means,
    the tables of `estimators.summary_table` follow, in the columns' own units.
    """

    name: Literal["pool"] = "pool"
    releases: Annotated[ReleaseNames, Field(min_length=1)]
    rows: PooledRows | None = None
    level: Level = 0.95

    @property
    def other_releases(self) -> tuple[str, ...]:
        return self.releases

    def check_together(self, releases: Sequence[tuple[str, ReleaseSpec]]) -> None:
        names = [name for name, _ in releases]
        if len(set(names)) < len(names):
            raise wordings.pool_too_small(", ".join(names))
        tables(releases, self.rows)
        check_same_kind(releases)

    def evidence_of(self, releases: Sequence[ReleaseEvidence]) -> Evidence:
        check_pool(releases, self.rows)
        return pool(releases, self.rows, units_of_first=True)

    def fit(self, evidence: Evidence) -> Estimate:
        """Raises RequestError if it is not."""
        if not evidence.parts:
            raise families.POOL(
                "A pool is estimated from several releases, and not from the evidence of one.",
                "Run 'gramercy estimate RELEASE --estimator pool', or use gramercy.pool in Python.",
            )
        errors = second_moment(evidence)
        matrices = {
            "denoised": evidence.repaired,
            "second_moment": evidence.raw,
            "noise_error": errors.noise_error,
            "standard_error": errors.standard_error,
        }
        summary = {}
        if table_units(evidence) is not None:
            summary = dict(SummaryTable(level=self.level).fit(evidence).tables)
        elif limits := caveats(evidence):
            summary = {"caveats": caveats_table(limits)}
        tuning = {
            "level": self.level,
            "number_of_rows": evidence.rows,
            "noise": typical_error(evidence.deviations**2),
            "sampling_error": typical_sampling_error(evidence),
        }
        return Estimate("pooled", matrices, tuning, {"releases": _table(evidence.parts)} | summary)


def _table(parts: Sequence[PoolPart]) -> pd.DataFrame:
    noise = np.array([each.noise for each in parts])
    sampling = np.array([each.sampling for each in parts])
    return pd.DataFrame(
        {
            "release": pd.Series([each.release for each in parts], dtype="str"),
            "weight": [each.weight for each in parts],
            "rows": [each.rows for each in parts],
            "noise": noise,
            "sampling_error": sampling,
            "standard_error": np.hypot(noise, sampling),
        }
    )
