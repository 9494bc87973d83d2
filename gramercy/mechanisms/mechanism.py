"""The interface of every mechanism, and the bases of those that add noise to a matrix or to rows.

No I/O here; private values leave only as noisy draws.
"""

from __future__ import annotations

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from gramercy.common.lattice import Lattice, UnscaledLattice
from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.histograms import ConstantsNoise
from gramercy.schemas import families
from gramercy.schemas.errors import RequestError
from gramercy.schemas.neighbours import Neighbours, ProtectedUnit
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.publications import SECOND_MOMENT, Publication
from gramercy.schemas.request_parts import MechanismSpec

Arithmetic = Literal["exact", "floating-point"]


@dataclass(frozen=True)
class SensitivityBounds:
    """Squared l2 bounds on the change of an integer row, where rows are not normalised."""

    # squared_row, squared_cell: bounds when a whole row, and when a single cell of the table, is
    # replaced; in squared lattice units
    squared_row: int
    squared_cell: int
    squared_norm: int  # largest squared norm of a row, in squared lattice units


@dataclass(frozen=True)
class PublicParameters:
    """The public facts of a table: all that noise may depend on."""

    # p, n: columns of the matrix; rows or persons as declared
    p: int
    n: int
    neighbours: Neighbours  # neighbour relation
    publishes_noisy_count: bool = False  # whether a noisy number of rows is published as well
    # protected unit: a row, a cell, or a person with all their rows
    privacy_unit: ProtectedUnit = "row"
    # bounds that follow from the declared ranges, where rows are not normalised
    sensitivity_bounds: SensitivityBounds | None = None
    # public average of the squared norm of a row: 1 where rows are normalised
    mean_squared_norm: float = 1.0
    mean_rows_per_person: float = 1.0  # declared rows per person, on average
    # Share of the budget's delta that is set aside for mechanisms that may fail. None without a
    # budget, and in bundles before format 6, whose mechanisms took a share of the request's delta.
    failure_share: float | None = None
    # columns of the table, if they differ from those of the matrix: each has one histogram
    table_columns: int | None = None
    # for a release that publishes histograms: in proportion, the share of the squared mu of each
    # stage of histograms, and last that of the row lengths
    histogram_shares: tuple[float, ...] = ()
    # whether one matrix for each of several groups of rows is published; a row that is replaced may
    # move to another group
    grouped: bool = False
    # the steps of a cumulative series, of which every one publishes a weighted sum; None without
    series: PrefixSums | None = None
    # standard deviation of the noise of the decoded sum, relative to that of what a step publishes
    spread: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "neighbours", Neighbours(self.neighbours))

    @property
    def weight_unit(self) -> int:
        """Units of a published sum in a unit of the lattice: those of the weights of a series."""
        return 1 if self.series is None else UNIT

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
    publishes: ClassVar[Publication] = SECOND_MOMENT
    arithmetic: ClassVar[Arithmetic] = "exact"
    neighbours: ClassVar[tuple[Neighbours, ...]] = tuple(Neighbours)
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row",)
    # Of integer rows, which need `normalisation: whole`.
    needs_whole_rows: ClassVar[bool] = False
    # Whether it draws the histograms from which constants are computed, and nothing else.
    estimates_constants: ClassVar[bool] = False
    # Whether it can share the budget with such histograms; and whether its noise may have the
    # metric of a pilot matrix.
    takes_private_constants: ClassVar[bool] = False
    takes_pilot: ClassVar[bool] = False
    # Whether a sum of independent draws has a law of the same family, as folds and groups need.
    closed_under_sums: ClassVar[bool] = False
    # Whether fresh noise on the sums of a cumulative series has one guarantee for all its steps.
    takes_series: ClassVar[bool] = False

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
            "publishes": cls.publishes.name,
            "arithmetic": cls.arithmetic,
            "neighbours": list(cls.neighbours),
            "units": list(cls.units),
        }

    @classmethod
    def from_spec(cls, spec: MechanismSpec, parameters: PublicParameters) -> Self:
        """The mechanism that a request asks for."""
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
        """The mechanism with the least noise that has a given guarantee."""
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

    def matrix_law(self, rows: float, parts: int = 1) -> NoiseLaw:
        """The law of the noise on a matrix that is the sum over some parts over a row number."""
        return (self.law.summed(parts) if parts > 1 else self.law).divided_by(rows)

    def noise_of_sum(self, folds: int) -> float:
        """Standard deviation of an off-diagonal entry of the noisy sum over all folds."""
        return self.law.summed(folds).sd_off_diagonal

    @property
    def trace_bound(self) -> float:
        """Public bound on the trace of the matrix without noise: 1 for rows of the unit ball."""
        return 1.0

    @property
    def sd_count(self) -> float | None:
        """Standard deviation of the noisy number of rows of a part; None if there is none."""
        return None

    @property
    def constants_noise(self) -> ConstantsNoise | None:
        """The noise of the histograms that it publishes instead of a matrix, if it does."""
        return None


# A noisy count is one more coordinate, weighted by 1/4; the matrix gets 3 % more noise for it.
COUNT_WEIGHT = 0.25


# The noise of a series in units of what it publishes: above, the sampler takes long (4 microseconds
# a draw here, 140 at 2^50). A lattice at this limit rounds by up to 3 % of the noise at 10^9 rows.
MOST_SERIES_SCALE = 2.0**45


@dataclass(frozen=True)
class NoisyGram:
    """A Gram matrix with its noise: integers on the lattice, which may be published."""

    gram: NDArray[Any]  # noisy Gram matrix in lattice units, symmetric, shape (p, p)
    rows: int | None  # noisy number of rows, where one is published


@dataclass(frozen=True)
class Additive(Mechanism):
    """Noise on the Gram matrix of rows of the unit ball."""

    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row", "person")
    takes_private_constants: ClassVar[bool] = True

    parameters: PublicParameters  # public facts of the table
    # scale of the noise, as each mechanism defines it; for the Gram matrix of unit-ball rows
    scale: float

    @property
    def lattice(self) -> Lattice:
        public, most = self.parameters, math.inf
        if public.series is not None:
            most = MOST_SERIES_SCALE / public.weight_unit
        return Lattice.fitting(
            public.p, public.n, self.sd_diagonal, public.mean_rows_per_person, most
        )

    @property
    @abstractmethod
    def sd_diagonal(self) -> float:
        """Standard deviation of the noise on a diagonal entry of the Gram matrix."""

    @property
    def sensitivity(self) -> float:
        """Largest change of the Gram matrix by one protected unit, in the mechanism's norm."""
        return math.sqrt(squared_sensitivity(self.parameters))

    def constants(self) -> dict[str, float]:
        constants = {"scale": self.scale, "sensitivity": self.sensitivity}
        return constants if self.sd_rows is None else constants | {"sd_rows": self.sd_rows}

    @property
    def sd_rows(self) -> float | None:
        """Standard deviation of the noisy number of rows, where one is published."""
        if not self.parameters.publishes_noisy_count:
            return None
        return self.sd_diagonal * self.parameters.spread / COUNT_WEIGHT

    @property
    def sd_count(self) -> float:
        """Of the count if one is published, else of the noisy trace."""
        return self.sd_rows or self.law.sd_diagonal * math.sqrt(self.parameters.p)

    def perturb(self, gram: NDArray[Any], rows: int) -> NoisyGram:
        """Draw the noise, once, and add it.

        `gram`: exact Gram matrix of the integer rows, shape (p, p), integers.
        """
        if gram.shape != (self.parameters.p, self.parameters.p):
            raise families.ARGUMENT(
                "The Gram matrix must have {columns} rows and columns.",
                columns=self.parameters.p,
            )
        noise, count = self._draw()
        return NoisyGram(gram + noise, None if count is None else rows + count)

    @abstractmethod
    def _draw(self) -> tuple[NDArray[np.int64], int | None]:
        """Noise in lattice units: a symmetric matrix, shape (p, p), and noise on the row count."""


def squared_sensitivity(parameters: PublicParameters, draws: Sequence[int] = ()) -> float:
    """Squared l2 sensitivity Delta_2^2 of the Gram matrix of rows in the unit ball, exactly.

    The same number holds in svec coordinates and for the plain upper triangle.

    ||x x^T - y y^T||_F^2 = |x|^4 + |y|^4 - 2 (x.y)^2 is at most 2, attained by orthogonal unit rows
    (which do not exist for one column), and 1 if a row is added or removed. Basis vectors attain
    both bounds with zeros off the diagonal, so they hold for the plain upper triangle as well.
    Adding or removing a row changes a weighted count by its weight; replacing a row does not.

    Of the matrices of several groups, stacked as one vector, adding or removing a row changes one.
    A replaced row may leave one group and enter another: the vector then moves by
    |x|^4 + |y|^4 <= 2, also for one column, and two counts change by their weight.

    The rows of a person, scaled so that their squared norms sum to at most 1, have the same bounds
    in any norm: their Gram matrix is an average of such x x^T and of zero, and the norm of a
    difference of averages is at most the largest norm of a difference.

    In a cumulative series a row has a weight in every sum, so that all its sums together move by
    that times the norm of its weights. A replaced row may leave one step and enter another, and be
    corrected in between, so that two columns of weights count, also of one column of the table.
    `draws`: how often each step is drawn; empty for once.
    """
    of_count = COUNT_WEIGHT**2 if parameters.publishes_noisy_count else 0.0
    if parameters.neighbours.changed_units == 1:
        once = 1.0 + of_count
    elif parameters.grouped:
        once = 2.0 + 2 * of_count
    else:
        once = 2.0 if parameters.p > 1 or parameters.series is not None else 1.0
    if parameters.series is None:
        return once
    norm = parameters.series.squared_norm(draws or None)
    return math.nextafter(once * norm / UNIT**2, math.inf)


def symmetric_matrix(upper: NDArray[Any], diagonal: NDArray[Any]) -> NDArray[Any]:
    """The symmetric matrix with this diagonal, and these entries above it, row by row."""
    p = diagonal.size
    matrix = np.zeros((p, p), dtype=diagonal.dtype)
    matrix[np.triu_indices(p, 1)] = upper
    matrix += matrix.T
    np.fill_diagonal(matrix, diagonal)
    return matrix


def off_diagonal_scale(scale: float) -> float:
    """The scale of an off-diagonal entry of white svec noise, scale / sqrt2, rounded up."""
    return math.nextafter(scale / math.sqrt(2), math.inf)


@dataclass(frozen=True)
class RowWise(Mechanism):
    """Noise on every row."""

    parameters: PublicParameters  # public facts of the table
    scale: float  # standard deviation of the noise, in the units of what is published
    delta: float  # delta at which epsilon is reported

    neighbours: ClassVar[tuple[Neighbours, ...]] = (Neighbours.REPLACE_ONE,)

    @property
    @abstractmethod
    def step(self) -> float:
        """The value of one lattice unit of a published row."""

    @abstractmethod
    def randomize(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw noise for a batch of rows, once, and add it.

        `rows`: integer rows, shape (p, rows).

        Returns shape (columns, rows).
        """

    @abstractmethod
    def gram(self, noisy: NDArray[np.float64]) -> NDArray[np.float64]:
        """Unbiased estimate of the sum over rows of x x^T from published rows; shape (p, p).

        `noisy`: published rows, shape (columns, rows), in published units.
        """


def sensitivity_bounds(parameters: PublicParameters, lattice: Lattice) -> SensitivityBounds:
    """Squared bounds on the change of an integer row.

    A normalised row changes by at most the diameter of the unit ball. The same bound holds for a
    cell, because changing one cell of the table changes the whole normalised row.
    """
    if parameters.sensitivity_bounds is not None:
        return parameters.sensitivity_bounds
    if isinstance(lattice, UnscaledLattice):  # no declared bounds: rows of zeros and ones
        return SensitivityBounds(
            squared_row=parameters.p, squared_cell=1, squared_norm=parameters.p
        )
    return SensitivityBounds(
        squared_row=4 * lattice.squared_radius,
        squared_cell=4 * lattice.squared_radius,
        squared_norm=lattice.squared_radius,
    )


def nominal_deviations(parameters: PublicParameters, variance: float) -> tuple[float, float]:
    """Standard deviations of the noise on a diagonal and an off-diagonal entry of Y^T Y.

    y_i y_j - x_i x_j = x_i z_j + z_i x_j + z_i z_j has variance (x_i^2 + x_j^2) v + v^2 off the
    diagonal, and 4 x_i^2 v + 2 v^2 on it. The rows are private, so each x_i^2 is replaced by its
    public average. Columns with a larger mean square have noisier entries, which analysts compute
    from the release (`NoiseLaw.row_deviations`).
    """
    share, n = parameters.mean_squared_norm / parameters.p, parameters.n
    diagonal = n * (4 * share * variance + 2 * variance**2)
    return math.sqrt(diagonal), math.sqrt(n * (2 * share * variance + variance**2))
