"""The interface of every mechanism. No I/O here; private values leave only as noisy draws."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas import families
from gramercy.schemas.contract import Neighbours, ProtectedUnit
from gramercy.schemas.errors import RequestError
from gramercy.schemas.manifest import ReleaseKind
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import MechanismSpec

Arithmetic = Literal["exact", "floating-point"]


@dataclass(frozen=True)
class SensitivityBounds:
    """Squared l2 bounds on the change of an integer row, where rows are not normalised.

    Parameters
    ----------
    squared_row, squared_cell
        Bounds when a whole row, and when a single cell of the table, is replaced; in squared
        lattice units.
    squared_norm
        Largest squared norm of a row, in squared lattice units.
    """

    squared_row: int
    squared_cell: int
    squared_norm: int


@dataclass(frozen=True)
class PublicParameters:
    """The public facts of a table: all that noise may depend on.

    Parameters
    ----------
    p, n
        Columns of the matrix; rows or persons as declared.
    neighbours
        Neighbour relation.
    publishes_noisy_count
        Whether a noisy number of rows is published as well.
    privacy_unit
        Protected unit: a row, a cell, or a person with all their rows.
    sensitivity_bounds
        Bounds that follow from the declared ranges, where rows are not normalised.
    mean_squared_norm
        Public average of the squared norm of a row: 1 where rows are normalised.
    mean_rows_per_person
        Declared rows per person, on average.
    failure_share
        Share of the budget's delta that is set aside for mechanisms that may fail. None without a
        budget, and in bundles before format 6, whose mechanisms took a share of the request's
        delta.
    table_columns
        Columns of the table, if they differ from those of the matrix: each has one histogram.
    histogram_shares
        For a release that publishes histograms: in proportion, the share of the squared mu of each
        stage of histograms, and last that of the row lengths.
    grouped
        Whether one matrix for each of several groups of rows is published; a row that is replaced
        may move to another group.
    """

    p: int
    n: int
    neighbours: Neighbours
    publishes_noisy_count: bool = False
    privacy_unit: ProtectedUnit = "row"
    sensitivity_bounds: SensitivityBounds | None = None
    mean_squared_norm: float = 1.0
    mean_rows_per_person: float = 1.0
    failure_share: float | None = None
    table_columns: int | None = None
    histogram_shares: tuple[float, ...] = ()
    grouped: bool = False

    @property
    def target_delta0(self) -> float | None:
        """The delta0 to aim at: a thousand releases fit the budget's failure share."""
        return None if self.failure_share is None else self.failure_share / _RELEASES_IN_SHARE


_RELEASES_IN_SHARE = 1024


class Mechanism(ABC):
    """Noise of a public scale, and its exact guarantee.

    A subclass is a frozen dataclass of `PublicParameters` and of the constants of its noise.
    """

    name: ClassVar[str]
    spec: ClassVar[type[MechanismSpec]]
    publishes: ClassVar[ReleaseKind] = "second-moment"
    arithmetic: ClassVar[Arithmetic] = "exact"
    neighbours: ClassVar[tuple[Neighbours, ...]] = ("replace-one", "add-remove")
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row",)

    parameters: PublicParameters

    @classmethod
    def summary(cls) -> str:
        """The purpose of the mechanism in one line, from the docstring of its request keys."""
        first = (inspect.getdoc(cls.spec) or "").partition("\n")[0]
        return first.partition("``: ")[2].rstrip(".")

    @classmethod
    def description(cls) -> dict[str, Any]:
        """The properties of the mechanism as plain data, for lists of mechanisms."""
        return {
            "name": cls.name,
            "summary": cls.summary(),
            "publishes": cls.publishes,
            "arithmetic": cls.arithmetic,
            "neighbours": list(cls.neighbours),
            "units": list(cls.units),
        }

    @classmethod
    def from_spec(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        """The mechanism that a request asks for.

        Raises
        ------
        RequestError
            If the mechanism does not support these parameters, or if the request does not accept
            its arithmetic.
        """
        if problem := cls._problem(spec, parameters):
            raise problem
        make = cls._published if spec.calibration == "published" else cls._exact
        return make(spec, parameters)

    @classmethod
    def _problem(cls, spec: MechanismSpec, parameters: PublicParameters) -> RequestError | None:
        if parameters.neighbours not in cls.neighbours:
            supported = cls.neighbours[0]
            return families.UNSUPPORTED(
                "{mechanism} does not support 'neighbours: {neighbours}'.",
                "Use another mechanism, or declare 'neighbours: {supported}' in the contract.",
                mechanism=cls.name,
                neighbours=parameters.neighbours,
                supported=supported,
            )
        if parameters.privacy_unit not in cls.units:
            if parameters.privacy_unit == "cell":
                return families.UNSUPPORTED(
                    "{mechanism} has no guarantee per cell.",
                    "Use rows or integer-rows, or declare 'privacy_unit: row' in the contract.",
                    mechanism=cls.name,
                )
            return families.UNSUPPORTED(
                "{mechanism} has no guarantee per person.",
                "Use gaussian, which publishes a second moment.",
                mechanism=cls.name,
            )
        if spec.arithmetic != cls.arithmetic:
            if cls.arithmetic == "floating-point":
                return families.ARITHMETIC(
                    "mechanism.arithmetic: the noise of {mechanism} is drawn in "
                    "floating-point numbers.",
                    "Write 'arithmetic: floating-point' to accept that.",
                    mechanism=cls.name,
                )
            return families.ARITHMETIC(
                "mechanism.arithmetic: the noise of {mechanism} is exact on a lattice of integers.",
                "Leave the key out.",
                mechanism=cls.name,
            )
        return None

    @classmethod
    def calibrated(
        cls,
        *,
        p: int,
        n: int,
        neighbours: Neighbours,
        epsilon: float | None = None,
        delta: float | None = None,
        mu: float | None = None,
        publishes_noisy_count: bool = False,
        failure_share: float | None = None,
        **keys: Any,
    ) -> Self:
        """The mechanism with the least noise that has a given guarantee.

        Parameters
        ----------
        p, n, neighbours, publishes_noisy_count, failure_share
            See `PublicParameters`.
        epsilon, delta, mu
            Epsilon at delta, or mu.
        keys
            The mechanism's own keys of a request.
        """
        parameters = PublicParameters(
            p, n, neighbours, publishes_noisy_count, failure_share=failure_share
        )
        return cls._from_keys(parameters, {"epsilon": epsilon, "delta": delta, "mu": mu, **keys})

    @classmethod
    def published(
        cls,
        *,
        p: int,
        n: int,
        neighbours: Neighbours,
        epsilon: float,
        delta: float | None = None,
        **keys: Any,
    ) -> Self:
        """The mechanism at the scale that a paper gives for epsilon and delta.

        Its exact guarantee may be weaker than the paper claims.
        """
        keys = {"epsilon": epsilon, "delta": delta, **keys, "calibration": "published"}
        return cls._from_keys(PublicParameters(p, n, neighbours), keys)

    @classmethod
    def _from_keys(cls, parameters: PublicParameters, keys: dict[str, Any]) -> Self:
        given = {key: value for key, value in keys.items() if value is not None}
        spec = cls.spec.model_validate({"name": cls.name, "arithmetic": cls.arithmetic, **given})
        return cls.from_spec(spec, parameters)

    @classmethod
    @abstractmethod
    def _exact(cls, spec: Any, parameters: PublicParameters) -> Self: ...

    @classmethod
    @abstractmethod
    def _published(cls, spec: Any, parameters: PublicParameters) -> Self: ...

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The exact guarantee of this scale, rounded towards less privacy."""

    @property
    @abstractmethod
    def lattice(self) -> Lattice:
        """The lattice on which rows are rounded and noise is drawn."""

    @property
    @abstractmethod
    def law(self) -> NoiseLaw:
        """The law of the noise on the published sum over rows, in units of the original rows.

        `NoiseLaw.none` if no matrix is published.
        """

    @abstractmethod
    def constants(self) -> dict[str, float]:
        """The public constants of this noise by name, as the manifest and the plan show them."""
