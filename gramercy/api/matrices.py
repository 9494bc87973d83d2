"""The matrices of a release with their errors, as released and in the columns' own units."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gramercy.api.measured import Measured, MeasuredColumn, measured, measured_column
from gramercy.schemas import wordings
from gramercy.schemas.errors import UnitRows
from gramercy.schemas.evidence import Evidence

if TYPE_CHECKING:
    from gramercy.estimators.table_units import TableUnits
    from gramercy.estimators.uncertainty.entries import Entries, EntryKind


class ReleaseMatrices(ABC):
    """What a release, or a pool of releases, says about its columns; every number has an error.

    Parameters
    ----------
    id
        DATASET/RELEASE.
    """

    def __init__(self, id: str) -> None:
        self.id = id
        self._entries: dict[str, Entries] = {}
        self._warned = False

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: errors are computed again when they are needed."""
        return vars(self) | {"_entries": {}}

    @property
    @abstractmethod
    def evidence(self) -> Evidence:
        """The input of estimators.

        Raises
        ------
        RequestError
            If there is no matrix.
        """

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix, in order."""
        return list(self.evidence.names)

    def _needs_second_moment(self) -> None:  # noqa: B027
        """Refuse a release that has no second moment; a pool always has one."""

    @property
    def _released(self) -> NDArray[np.float64]:
        """The second moment as released, with the mean of the noise."""
        return self.evidence.raw

    @property
    def second_moment(self) -> Measured:
        """The second moment as released, noise included; shape (p, p), may be indefinite.

        Its intervals are for the second moment of the population about zero. If the noise has a
        mean (``noise.mean``, on the diagonal), they are centred at the matrix minus that mean.

        Raises
        ------
        RequestError
            If the release is a precision matrix.
        """
        self._needs_second_moment()
        return Measured(self._released, self.names, lambda: self._entries_of("second moment"))

    @property
    def means(self) -> MeasuredColumn:
        """Mean of every column in its own unit; for a level, its share of the rows.

        If rows were clipped, row z counts with the weight min(1, radius / |z|)^2. If the release
        states which share of each column's cells is present, they are the means of these cells,
        for cells that are missing completely at random. Otherwise a missing cell counts as the
        column's centre.

        Raises
        ------
        RequestError
            If the release is a precision matrix, has no intercept, or is of unit rows.
        """
        return self._in_own_units("means")

    @property
    def standard_deviations(self) -> MeasuredColumn:
        """Standard deviation of every column in its own unit; NaN within the noise.

        For clipped rows and missing cells see `means`, which raises in the same cases.
        """
        return self._in_own_units("standard deviations")

    @property
    def covariance(self) -> Measured:
        """Unbiased covariances about the means, in the columns' own units; may be indefinite.

        For clipped rows and missing cells see `means`; the cells of two columns must be missing
        independently of each other. If the release has no intercept, they are second moments about
        the public centres, in the units of `second_moment`.

        Of unit rows they are second moments about the means, or the centres, of *directions*, in
        the units of `second_moment`; a `UnitRows` warning says so once. Raises as `second_moment`
        does.
        """
        units = self._warn_or_own_units()
        if units is None:
            return self._measured("covariance")
        return measured(self._own_entries("covariance", units), units.names)

    @property
    def correlation(self) -> Measured:
        """Correlations of the same rows, about the same means as `covariance`.

        NaN if the noise is too large. Of unit rows they are associations of directions, not Pearson
        correlations of the table, and a `UnitRows` warning says so once. Raises as `second_moment`
        does.
        """
        units = self._warn_or_own_units()
        if units is None:
            return self._measured("correlation")
        entries, evidence = self._entries_of("correlation"), self.evidence
        unknown = units.unknown(evidence.raw, evidence.deviations, evidence.terms)
        unknown &= ~np.eye(len(unknown), dtype=bool)
        return measured(replace(entries, estimable=entries.estimable & ~unknown), units.names)

    @property
    def partial_correlation(self) -> Measured:
        """Correlations of two columns given all others, about the same means as `covariance`.

        From the inverse of the matrix, corrected for the bias from noise. If the smallest
        eigenvalues may be due to noise, from a lasso of every column on the others, with NaN where
        noise leaves no residual. NaN also for one level of every column of levels, the reference:
        given all others, it is known. Of unit rows see `correlation`. Raises as `second_moment`
        does.
        """
        self._warn_or_own_units()
        return self._measured("partial-correlation")

    def _warn_or_own_units(self) -> TableUnits | None:
        """The columns' own units if the release has them; a warning, once, for unit rows."""
        from gramercy.estimators.table_units import table_units

        self._needs_second_moment()
        evidence = self.evidence
        if evidence.unit and not self._warned:
            self._warned = True
            warnings.warn(str(wordings.unit_rows(self.id)), UnitRows, stacklevel=3)
        return table_units(evidence)

    def _in_own_units(self, kind: str) -> MeasuredColumn:
        from gramercy.estimators.table_units import table_units

        self._needs_second_moment()
        units = table_units(self.evidence)
        if units is None:
            raise wordings.no_own_units(self.id)
        return measured_column(self._own_entries(kind, units), units.names)

    def _own_entries(self, kind: str, units: TableUnits) -> Entries:
        """Entries in own units with their errors, computed once; see `uncertainty.entries`."""
        from gramercy.estimators.uncertainty import entries as own_entries

        functions = {
            "means": own_entries.table_means,
            "standard deviations": own_entries.table_deviations,
            "covariance": own_entries.table_covariance,
        }
        if kind not in self._entries:
            self._entries[kind] = functions[kind](self.evidence, units)
        return self._entries[kind]

    def _entries_of(self, kind: EntryKind) -> Entries:
        """Entries with their errors, computed once; see `estimators.uncertainty.entries`."""
        from gramercy.estimators.uncertainty.entries import entries

        if kind not in self._entries:
            self._entries[kind] = entries(self.evidence, kind)
        return self._entries[kind]

    def _measured(self, kind: EntryKind) -> Measured:
        return measured(self._entries_of(kind), self.names)
