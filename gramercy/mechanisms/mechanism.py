"""What every publishing mechanism offers. No I/O here, and no private value leaves a draw."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from gramercy.common.lattice import Lattice
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.contract import Neighbours, ProtectedUnit
from gramercy.schemas.errors import RequestError
from gramercy.schemas.manifest import FORMAT, Format, ReleaseKind
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.specs import MechanismSpec

Arithmetic = Literal["exact", "floating-point"]


@dataclass(frozen=True)
class Reach:
    """The most that an integer row may move where rows are not normalised, squared.

    Parameters
    ----------
    row, cell
        When a whole row is replaced, and when one cell of the table is.
    longest
        The squared length of the longest row.
    """

    row: int
    cell: int
    longest: int


@dataclass(frozen=True)
class Setting:
    """All that noise may depend on: public facts of a table.

    Parameters
    ----------
    p, n
        Columns of the matrix, and rows or persons as declared.
    neighbours, unit
        What may change: one row replaced, or present or absent; or one cell; or a person, with all
        their rows.
    counted
        Whether a noisy number of rows has to be published as well.
    reach
        From the declared bounds, where rows are not normalised.
    power
        The squared length of a row, as the public knows it: 1 where rows are normalised.
    each
        Rows of one person, as declared: on average.
    failures
        The share of its delta that the data set's budget sets aside for mechanisms that may fail.
        None in bundles before format 6, whose mechanisms took a share of the request's delta, and
        where there is no budget.
    format
        The manifest format that a guarantee is stated for. What an earlier version has stated and
        charged for a scale stays its guarantee, also where more has been proven since.
    """

    p: int
    n: int
    neighbours: Neighbours
    counted: bool = False
    unit: ProtectedUnit = "row"
    reach: Reach | None = None
    power: float = 1.0
    each: float = 1.0
    failures: float | None = None
    format: Format = FORMAT

    @property
    def failure(self) -> float | None:
        """The delta0 to aim at: so little that a thousand releases fit the budget's share."""
        return None if self.failures is None else self.failures / _RELEASES


_RELEASES = 1024


class Mechanism(ABC):
    """Noise of one public scale, and its exact guarantee.

    A subclass is a frozen dataclass of a `Setting` and of the constants of its noise.
    """

    name: ClassVar[str]
    spec: ClassVar[type[MechanismSpec]]
    publishes: ClassVar[ReleaseKind] = "second-moment"
    arithmetic: ClassVar[Arithmetic] = "exact"
    neighbours: ClassVar[tuple[Neighbours, ...]] = ("replace-one", "add-remove")
    units: ClassVar[tuple[ProtectedUnit, ...]] = ("row",)

    setting: Setting

    @classmethod
    def summary(cls) -> str:
        """What it is for, in one line: the first of what a request says of it."""
        first = (inspect.getdoc(cls.spec) or "").partition("\n")[0]
        return first.partition("``: ")[2].rstrip(".")

    @classmethod
    def about(cls) -> dict[str, Any]:
        """What it is, as plain data for lists of all of them."""
        return {
            "name": cls.name,
            "summary": cls.summary(),
            "publishes": cls.publishes,
            "arithmetic": cls.arithmetic,
            "neighbours": list(cls.neighbours),
            "units": list(cls.units),
        }

    @classmethod
    def of(cls, spec: MechanismSpec, setting: Setting) -> Self:
        """The mechanism that a request asks for.

        Raises
        ------
        RequestError
            If this mechanism has no meaning there, or needs a consent that is missing.
        """
        if setting.neighbours not in cls.neighbours:
            raise RequestError(
                f"{cls.name}: is not defined for {setting.neighbours}, because what it publishes "
                "depends on the number of rows.",
                f"Declare {cls.neighbours[0]} in the contract.",
            )
        if setting.unit not in cls.units:
            raise RequestError(
                f"{cls.name}: has no guarantee per {setting.unit}.",
                "Use rows or integer-rows, or declare 'unit: row' in the contract."
                if setting.unit == "cell"
                else "Use gaussian, which publishes their second moment.",
            )
        if spec.arithmetic != cls.arithmetic:
            raise RequestError(
                f"{cls.name}: key 'mechanism.arithmetic': its noise is "
                f"{_ARITHMETIC[cls.arithmetic]}.",
                f"Say 'arithmetic: {cls.arithmetic}' to accept that."
                if cls.arithmetic == "floating-point"
                else "Leave the key out.",
            )
        make = cls._published if spec.calibration == "published" else cls._exact
        return make(spec, setting)

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
        counted: bool = False,
        failures: float | None = None,
        **keys: Any,
    ) -> Self:
        """The least noise with a guarantee.

        Parameters
        ----------
        p, n, neighbours, counted, failures
            See `Setting`.
        epsilon, delta, mu
            Epsilon at delta, or mu.
        keys
            The mechanism's own keys of a request.
        """
        asked = {"epsilon": epsilon, "delta": delta, "mu": mu, **keys}
        setting = Setting(p, n, neighbours, counted, failures=failures)
        return cls._made(setting, asked)

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
        """The scale that a paper gives for epsilon and delta, whatever it is worth."""
        asked = {"epsilon": epsilon, "delta": delta, **keys, "calibration": "published"}
        return cls._made(Setting(p, n, neighbours), asked)

    @classmethod
    def _made(cls, setting: Setting, asked: dict[str, Any]) -> Self:
        stated = {key: value for key, value in asked.items() if value is not None}
        spec = cls.spec.model_validate({"name": cls.name, "arithmetic": cls.arithmetic, **stated})
        return cls.of(spec, setting)

    @classmethod
    @abstractmethod
    def _exact(cls, spec: Any, setting: Setting) -> Self: ...

    @classmethod
    @abstractmethod
    def _published(cls, spec: Any, setting: Setting) -> Self: ...

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
        """The noise on the sum over rows of what is published, in units of the original rows."""

    @abstractmethod
    def plan(self) -> dict[str, float]:
        """The public constants of this noise, by name, as the manifest and the plan show them."""


_ARITHMETIC = {
    "exact": "exact on a lattice of integers",
    "floating-point": "drawn in floating-point numbers",
}
