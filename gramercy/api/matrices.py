"""The matrices of a release with their errors, as released and in the columns' own units."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gramercy.api.measured import Measured, MeasuredColumn, measured, measured_column
from gramercy.archive.release_bundle import ReleaseBundle
from gramercy.schemas.errors import UnitRows
from gramercy.schemas.problems import analysis as problems
from gramercy.schemas.problems.warnings import unit_rows

if TYPE_CHECKING:
    from gramercy.estimators.own_units import OwnUnits
    from gramercy.estimators.uncertainty.entries import Entries, EntryKind


class ReleaseMatrices:
    """What a release says about its columns; every number comes with its error.

    Parameters
    ----------
    id
        DATASET/RELEASE.
    bundle
        The release, its seal verified.
    """

    def __init__(self, id: str, bundle: ReleaseBundle) -> None:
        self.id = id
        self._bundle = bundle
        self._entries: dict[str, Entries] = {}
        self._warned = False

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
        return Measured(
            self._bundle.raw,
            self._bundle.manifest.names,
            lambda: self._entries_of("second moment"),
        )

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
        entries, evidence = self._entries_of("correlation"), self._bundle.evidence
        unknown = units.unknown(evidence.raw, evidence.deviations)
        unknown &= ~np.eye(len(unknown), dtype=bool)
        return measured(replace(entries, estimable=entries.estimable & ~unknown), units.names)

    @property
    def partial_correlation(self) -> Measured:
        """Correlations of two columns given all others, about the same means as `covariance`.

        From the inverse of the matrix, corrected for the bias from noise. If the smallest
        eigenvalues may be due to noise, from a lasso of every column on the others, with NaN where
        noise leaves no residual. Of unit rows see `correlation`. Raises as `second_moment` does.
        """
        self._warn_or_own_units()
        return self._measured("partial-correlation")

    def _needs_matrix(self) -> None:
        if self._bundle.manifest.kind == "marginals":
            raise problems.no_matrix(self.id)

    def _needs_second_moment(self) -> None:
        self._needs_matrix()
        if self._bundle.manifest.kind == "precision":
            raise problems.not_a_second_moment(self.id)

    def _warn_or_own_units(self) -> OwnUnits | None:
        """The columns' own units if the release has them; a warning, once, for unit rows."""
        from gramercy.estimators.own_units import own_units

        self._needs_second_moment()
        evidence = self._bundle.evidence
        if evidence.unit and not self._warned:
            self._warned = True
            warnings.warn(str(unit_rows(self.id)), UnitRows, stacklevel=3)
        return own_units(evidence)

    def _in_own_units(self, kind: str) -> MeasuredColumn:
        from gramercy.estimators.own_units import own_units

        self._needs_second_moment()
        units = own_units(self._bundle.evidence)
        if units is None:
            raise problems.no_own_units(self.id)
        return measured_column(self._own_entries(kind, units), units.names)

    def _own_entries(self, kind: str, units: OwnUnits) -> Entries:
        """Entries in own units with their errors, computed once; see `uncertainty.own_entries`."""
        from gramercy.estimators.uncertainty import own_entries

        functions = {
            "means": own_entries.own_means,
            "standard deviations": own_entries.own_deviations,
            "covariance": own_entries.own_covariance,
        }
        if kind not in self._entries:
            self._entries[kind] = functions[kind](self._bundle.evidence, units)
        return self._entries[kind]

    def _entries_of(self, kind: EntryKind) -> Entries:
        """Entries with their errors, computed once; see `estimators.uncertainty.entries`."""
        from gramercy.estimators.uncertainty.entries import entries

        if kind not in self._entries:
            self._entries[kind] = entries(self._bundle.evidence, kind)
        return self._entries[kind]

    def _measured(self, kind: EntryKind) -> Measured:
        return measured(self._entries_of(kind), self._bundle.manifest.names)
