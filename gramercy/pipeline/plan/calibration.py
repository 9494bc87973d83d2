"""Calibrate the noise of a release, and compute its law and exact guarantee.

Only public facts are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramercy import mechanisms
from gramercy.common.lattice import row_lattice
from gramercy.common.prefix_sums import UNIT, PrefixSums
from gramercy.estimators.noise.denoise import denoise
from gramercy.mechanisms.accounting.composition import composed_mu, remaining_mu
from gramercy.mechanisms.accounting.gdp import gaussian_scale, gdp_mu, subtract_down
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import Gaussian, target_mu
from gramercy.mechanisms.histograms import ConstantsNoise
from gramercy.mechanisms.mechanism import (
    Mechanism,
    PublicParameters,
    SensitivityBounds,
    squared_sensitivity,
)
from gramercy.scaling.chain import ConstantsChain
from gramercy.scaling.shares import shares
from gramercy.scaling.whitening import Turning
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError
from gramercy.schemas.evidence import Histogram
from gramercy.schemas.facts import (
    MAX_ENTRIES,
    ColumnFacts,
    CumulativeFacts,
    GuaranteeFacts,
    LevelsFacts,
    check_group_names,
)
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import finite_or_none, parse
from gramercy.schemas.normalisation import Clip, Unit, Whole
from gramercy.schemas.request_parts import MechanismSpec

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Calibration:
    """All noise of a release."""

    mechanism: Mechanism  # the mechanism that publishes the matrix, the rows or the histograms
    # the noise of the histograms from which the release's own constants are computed, in addition
    # to the mechanism; None if it draws them itself, or the constants are known before
    added: ConstantsNoise | None = None
    # the mechanism that publishes the pilot matrix, which shows the metric; None without
    pilot: Gaussian | None = None
    # the mechanisms that publish the matrices of lost moments and of missing cells; None without
    lost: Gaussian | None = None
    missing: Gaussian | None = None
    # the mechanism before the counts showed that cells are missing: `mechanism` and `missing`
    # together have its mu; None if the counts did not show it
    planned: Mechanism | None = None
    # how often each step of a series is drawn, up to this one; empty in a plan, and without
    draws: tuple[int, ...] = ()

    @property
    def constants_noise(self) -> ConstantsNoise | None:
        """The noise of all histograms of the release, if it has any."""
        return self.added or self.mechanism.constants_noise

    @property
    def further(self) -> dict[str, Gaussian]:
        """The mechanisms of further matrices; see `ReleaseSpec.further_rows`."""
        found = {"lost": self.lost, "missing": self.missing}
        return {name: each for name, each in found.items() if each is not None}

    @property
    def guarantee(self) -> Guarantee:
        """The exact guarantee of everything that is published.

        Histograms and matrices are adaptive Gaussian mechanisms of one table, whose mu compose to
        the root of their sum of squares; what holds for the mechanism alone, such as its exact
        profile, does not hold for all of them. It is the same whether cells are missing or not,
        which is not known before the first draw.
        """
        alone = (self.planned or self.mechanism).guarantee
        if self.draws and isinstance(self.mechanism, Gaussian):
            alone = self.mechanism.guarantee_of_draws(self.draws)
        if self.added is None:
            return alone
        others = [each.guarantee.mu for each in (self.pilot, self.lost) if each is not None]
        return Guarantee(composed_mu([alone.mu, self.added.mu, *others]), alone.delta0)

    def noise_of_sum(self, spec: ReleaseSpec) -> float:
        """Standard deviation of an off-diagonal entry of the noisy sum over rows of the unit ball.

        A release of histograms alone has no such sum; its radius suits a matrix of the same mu. Of
        groups it is the noise of one group, relative to as many rows as all groups have together:
        the radius suits groups of equal sizes. It is that of the planned mechanism: the radius is
        chosen before it is known whether cells are missing.
        """
        mechanism = self.planned or self.mechanism
        return mechanism.noise_of_sum(spec.folds) * spec.groups_count

    def noise_of_lost_sum(self, spec: ReleaseSpec) -> float | None:
        """See `noise_of_sum`: of what rows lose by clipping; None if it is not published."""
        return None if self.lost is None else self.lost.noise_of_sum(1) * spec.groups_count

    def constants(self) -> dict[str, float]:
        """The public constants of all noise by name, for the manifest and the plan."""
        constants = self.mechanism.constants()
        if self.added is not None:
            constants |= self.added.constants()
        if self.pilot is not None:
            constants["scale_pilot"] = self.pilot.scale
        return constants | {f"scale_{name}": each.scale for name, each in self.further.items()}


def calibrate(spec: ReleaseSpec) -> Calibration:
    """Calibrate the noise of a release from public facts alone."""
    mechanism_type = mechanisms.registry[spec.mechanism["name"]]
    requested = mechanism_type.spec.model_validate(spec.mechanism)
    if spec.normalisation.keeps_rows != mechanism_type.needs_whole_rows:
        raise families.REQUEST_USE(
            "The normalisation 'whole' and the mechanism 'integer-rows' require each other.",
            "Use both, or neither.",
        )
    parameters = public_parameters(spec)
    if mechanism_type.estimates_constants and not spec.estimates_constants:
        raise families.SCALING(
            "'marginals' estimates the constants itself.",
            "Leave 'scaling' and 'normalisation' out.",
        )
    if spec.has_histograms and not mechanism_type.estimates_constants:
        calibration = _with_constants(spec, mechanism_type, requested, parameters)
    else:
        calibration = Calibration(mechanism_type.from_spec(requested, parameters))
    check_guarantee(mechanism_type.name, calibration.guarantee, requested)
    if spec.cumulative is not None and spec.cumulative.draws:
        calibration = replace(calibration, draws=spec.cumulative.all_draws)
    if spec.folds > 1:
        if not calibration.mechanism.closed_under_sums:
            raise families.REQUEST_USE(
                "'folds' cannot be used with '{mechanism}'.",
                "Use 'gaussian' or 'gaussian-iid': a sum of their noise is of the same family.",
                mechanism=calibration.mechanism.name,
            )
        if spec.privacy_unit == "person":
            raise families.REQUEST_USE(
                "'folds' cannot be used where persons are protected.",
                "Leave the key out.",
            )
        if spec.folds > spec.dataset.rows:
            raise families.REQUEST_USE(
                "'folds' is {folds}, but the table has only {rows} rows.",
                "Ask for fewer folds.",
                folds=spec.folds,
                rows=spec.dataset.rows,
            )
    if spec.by is not None:
        _check_groups(spec, spec.by, calibration.mechanism)
    if spec.cumulative is not None:
        _check_steps(spec, spec.cumulative, calibration.mechanism)
    return calibration


def _with_constants(
    spec: ReleaseSpec,
    mechanism_type: type[Mechanism],
    requested: MechanismSpec,
    parameters: PublicParameters,
) -> Calibration:
    """Noise for histograms and for the matrix that together have the requested guarantee."""
    name, scaling = mechanism_type.name, spec.scaling
    if not mechanism_type.takes_private_constants or requested.calibration != "exact":
        raise families.SCALING(
            "'scaling: private' is not available with '{mechanism}' or with 'calibration: "
            "published'.",
            "Use a mechanism that adds noise to the matrix, such as 'gaussian', with exact "
            "calibration.",
            mechanism=name,
        )
    if requested.delta == 0 or scaling is None:
        raise wordings.scaling_needs_delta()
    total = target_mu(requested)
    while True:
        noise = ConstantsNoise.with_mu(
            len(spec.columns),
            spec.neighbours,
            [total * math.sqrt(share) for share in scaling.stages],
            total * math.sqrt(scaling.lengths),
            total * math.sqrt(scaling.turned),
        )
        pilot, lost = (
            _further_mechanism(parameters, total * math.sqrt(share)) if share else None
            for share in (scaling.pilot, scaling.lost)
        )
        drawn = [each.guarantee.mu for each in (pilot, lost) if each is not None]
        left = remaining_mu(total, [noise.mu, *drawn])  # so that all compose to at most the total
        mechanism = _at_mu(mechanism_type, requested, parameters, left)
        result = Calibration(mechanism, noise, pilot=pilot, lost=lost)
        exact = result.guarantee
        if requested.epsilon is None or exact.delta(requested.epsilon) <= requested.delta:
            return _with_missing(spec, result, requested, parameters)
        # The failure probability of the mechanism takes part of delta.
        reduced = gdp_mu(requested.epsilon, subtract_down(requested.delta, exact.delta0))
        total = min(reduced, math.nextafter(total, 0))


_MISSING = 0.05  # of what the matrix has


def _with_missing(
    spec: ReleaseSpec,
    calibration: Calibration,
    requested: MechanismSpec,
    parameters: PublicParameters,
) -> Calibration:
    """The same with a matrix of missing cells, if the published counts show some in two columns.

    Its mu is taken from that of the released matrix. So all that is drawn after the counts has the
    same mu, regardless of the counts.
    """
    rows, planned = spec.missing_rows, calibration.mechanism
    if rows is None:
        return calibration
    mu, width = planned.guarantee.mu, rows.width(parameters.p)
    missing = _further_mechanism(replace(parameters, p=width), mu * math.sqrt(_MISSING))
    left = remaining_mu(mu, [missing.guarantee.mu])
    mechanism = _at_mu(type(planned), requested, parameters, left)
    return replace(calibration, mechanism=mechanism, missing=missing, planned=planned)


def _further_mechanism(parameters: PublicParameters, mu: float) -> Gaussian:
    """The mechanism of a further matrix, without a count.

    A further row is a row of the unit ball, so that its sensitivity is that of the rows themselves.
    """
    parameters = replace(parameters, publishes_noisy_count=False)
    return Gaussian(parameters, gaussian_scale(squared_sensitivity(parameters), mu))


def _at_mu(
    mechanism_type: type[Mechanism],
    requested: MechanismSpec,
    parameters: PublicParameters,
    mu: float,
) -> Mechanism:
    """The mechanism of the request, calibrated to at most a given mu."""
    keys = requested.non_default_keys()
    keys.pop("epsilon", None)

    def mechanism(level: dict[str, float]) -> Mechanism:
        spec = parse(
            mechanism_type.spec, keys | level, f"mechanism '{mechanism_type.name}'", RequestError
        )
        return mechanism_type.from_spec(spec, parameters)

    if "mu" in mechanism_type.spec.level_keys:
        return mechanism({"mu": mu})
    keys.pop("mu", None)
    epsilon = requested.epsilon or math.nan
    while True:  # its mu is almost proportional to epsilon
        made = mechanism({"epsilon": epsilon})
        if made.guarantee.mu <= mu:
            return made
        epsilon *= min(mu / made.guarantee.mu, 1 - 1e-3)


def _check_groups(spec: ReleaseSpec, by: LevelsFacts, mechanism: Mechanism) -> None:
    if not mechanism.closed_under_sums:
        raise families.GROUPS(
            "'by' is not available with '{mechanism}'.",
            "Use 'gaussian' or 'gaussian-iid', or leave 'by' out.",
            mechanism=mechanism.name,
        )
    check_group_names(by)
    entries = spec.parts * mechanism.parameters.p**2
    if entries > MAX_ENTRIES:
        raise families.GROUPS(
            "'by': {groups} groups with {folds} folds and {p} columns have {entries} entries; at "
            "most {limit} are possible.",
            "Group by a column with fewer levels, or publish fewer columns or folds.",
            groups=spec.groups_count,
            folds=spec.folds,
            p=mechanism.parameters.p,
            entries=entries,
            limit=MAX_ENTRIES,
        )


def _check_steps(spec: ReleaseSpec, facts: CumulativeFacts, mechanism: Mechanism) -> None:
    """Refuse a series whose exact sums need too much memory at its last step."""
    entries = facts.steps * spec.groups_count * mechanism.parameters.p**2
    if entries > MAX_ENTRIES:
        raise families.REQUEST_USE(
            "'cumulative': {steps} steps with {groups} groups and {p} columns have {entries} "
            "entries; at most {limit} are possible.",
            "Choose longer steps, or publish fewer columns or groups.",
            steps=facts.steps,
            groups=spec.groups_count,
            p=mechanism.parameters.p,
            entries=entries,
            limit=MAX_ENTRIES,
        )


def without_noise(pilot: Gaussian, total: Array, count: int) -> Array:
    """The sum over rows of the unit ball from a noisy one; positive semidefinite, shape (q, q)."""
    estimate: Array = denoise(total / count, pilot.matrix_law(count), unit=False) * count
    return estimate


def turning_of(
    pilot: Gaussian, total: Array, chain: ConstantsChain, lengths: Histogram, spec: ReleaseSpec
) -> Turning:
    """What a noisy pilot matrix shows; see `ConstantsChain.turning`."""
    estimate = without_noise(pilot, total, spec.dataset.count)
    return chain.turning(lengths, spec, estimate, pilot.noise_of_sum(1))


def check_guarantee(name: str, exact: Guarantee, requested: MechanismSpec) -> None:
    """Refuse noise whose exact guarantee is weaker than requested."""
    exact_epsilon = exact.epsilon(requested.delta)
    if requested.epsilon is None:
        if math.isinf(exact_epsilon):
            raise families.GUARANTEE(
                "{mechanism}: this noise has no finite epsilon at delta={delta:g}.",
                "Ask for more noise, or a larger delta.",
                mechanism=name,
                delta=requested.delta,
            )
        return
    exact_delta = exact.delta(requested.epsilon)
    if exact_delta > requested.delta:
        raise families.GUARANTEE(
            "{mechanism}: the request is for epsilon={epsilon:g} and delta={delta:g}; this noise "
            "has delta={exact_delta:.4g} at that epsilon, and epsilon={exact_epsilon:.4g} at that "
            "delta.",
            "Use 'calibration: exact', which finds the noise that is needed.",
            mechanism=name,
            epsilon=requested.epsilon,
            delta=requested.delta,
            exact_delta=exact_delta,
            exact_epsilon=exact_epsilon,
        )


@lru_cache(64)  # releases of one mechanism have the same guarantee
def guarantee_facts(
    exact: Guarantee, delta: float, requested: float | None = None
) -> GuaranteeFacts:
    """A guarantee as mu-GDP, (epsilon, delta)-DP, zCDP and pure DP; see `GuaranteeFacts`.

    Parameters
    ----------
    requested
        The epsilon for which the noise was calibrated, if any. It is stated where it holds and
        differs from the smallest one by rounding alone.
    """
    rho, failure = exact.rho()
    epsilon = exact.epsilon(delta)
    if requested is not None and math.isclose(epsilon, requested, rel_tol=_ROUNDING):
        epsilon = requested if exact.delta(requested) <= delta else epsilon
    return GuaranteeFacts(
        mu=exact.mu,
        delta0=exact.delta0,
        pure_epsilon=finite_or_none(exact.pure),
        epsilon=epsilon,
        delta=delta,
        rho=finite_or_none(rho),
        rho_failure=failure,
        power=exact.power(0.05),
        profile={f"{epsilon:g}": exact.delta(epsilon) for epsilon in _PROFILE_EPSILONS},
    )


_ROUNDING = 1e-12  # relative error of an epsilon in floating-point arithmetic
_PROFILE_EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, 8.0)


AnyFacts = ColumnFacts | LevelsFacts


def public_parameters(spec: ReleaseSpec) -> PublicParameters:
    """The public parameters of a table, as mechanisms take them."""
    p = len(spec.names)
    bounds, mean_squared_norm = None, 1.0
    if spec.normalisation.by_bounds:
        lattice, norm = row_lattice(p), spec.largest_norm
        bounds = _sensitivity_bounds(
            spec.columns, norm, lattice.unit_length, lattice.squared_radius
        )
        mean_squared_norm = _mean_squared_norm(spec, norm)
    if spec.normalisation.keeps_rows:
        bounds = _sensitivity_bounds(spec.columns, 1.0, 1.0, math.ceil(spec.largest_norm**2))
        mean_squared_norm = _mean_squared_norm(spec, 1.0)
    return PublicParameters(
        p=p,
        n=spec.dataset.count,
        mean_rows_per_person=spec.dataset.rows / spec.dataset.count,
        neighbours=spec.neighbours,
        publishes_noisy_count=spec.publishes_noisy_count,
        privacy_unit=spec.privacy_unit,
        sensitivity_bounds=bounds,
        mean_squared_norm=mean_squared_norm,
        failure_share=spec.budget.failure_share,
        table_columns=len(spec.columns),
        histogram_shares=()
        if spec.scaling is None or not spec.scaling.stages
        else (*spec.scaling.stages, spec.scaling.lengths),
        grouped=spec.by is not None,
        **_series_parameters(spec.cumulative),
    )


def _series_parameters(facts: CumulativeFacts | None) -> dict[str, Any]:
    """What mechanisms take of a cumulative series."""
    if facts is None:
        return {}
    series = PrefixSums(facts.steps)
    return {"series": series, "spread": UNIT * series.spread(facts.summed)}


def row_normalisation(spec: ReleaseSpec) -> Unit | Clip | Whole:
    """How rows are normalised; a box is a clip at a radius that no row exceeds."""
    return spec.normalisation.of_rows(spec.largest_norm)


def _mean_squared_norm(spec: ReleaseSpec, norm: float) -> float:
    """Mean squared norm of a row with uniform cells, in units of `norm` squared."""
    squares = [1 / norm**2] if spec.intercept else []
    for column in spec.columns:
        if isinstance(column, LevelsFacts):
            squares.append(1 / norm**2)
        else:
            unit = column.scale * norm
            mean = (column.lower / 2 + column.upper / 2 - column.centre) / unit
            squares.append((column.upper / unit - column.lower / unit) ** 2 / 12 + mean**2)
    return math.fsum(squares)


def _sensitivity_bounds(
    columns: Sequence[AnyFacts], norm: float, per_unit: float, squared_norm: int
) -> SensitivityBounds:
    """Upper bounds on the change of a row or a cell, and on the norm of a row, in lattice units.

    Parameters
    ----------
    per_unit
        Length of a unit row in lattice units.
    """
    cells = []
    for column in columns:
        if isinstance(column, LevelsFacts):
            entry = int(np.rint(1.0 / norm * per_unit))
            cells.append((2 if len(column.levels) > 1 else 1) * entry * entry)
        else:
            ends = [(end - column.centre) / column.scale for end in (column.lower, column.upper)]
            low, high = (int(np.rint(end / norm * per_unit)) for end in ends)
            cells.append((high - low) ** 2)
    return SensitivityBounds(
        squared_row=sum(cells), squared_cell=max(cells), squared_norm=squared_norm
    )


FOLDS = 10  # ten cover as well as twenty, and cost less noise
_NEGLIGIBLE = 1 / 3  # of the sampling error
TYPICAL_SQUARE = 12.0  # of an estimated radius, per matrix column: the median of 13 tables
_FOLDABLE = ("gaussian", "gaussian-iid")


def proposed_folds(spec: ReleaseSpec, calibration: Calibration) -> int:
    """Number of folds that a planned release without folds should have; 1 for none.

    Their noise is sqrt(folds) times as large. It must stay below a third of the sampling error of a
    correlation, 1 / sqrt(n). Not for persons, whose releases have no folds.
    """
    if spec.folds > 1 or spec.by is not None or spec.privacy_unit != "row":
        return spec.folds
    if spec.mechanism["name"] not in _FOLDABLE:
        return 1
    q, n = len(spec.names), spec.dataset.rows
    square = float(q)  # unit rows: a diagonal entry is 1/q
    if isinstance(spec.normalisation, Clip):
        radius = spec.normalisation.radius
        square = TYPICAL_SQUARE * q if radius is None else radius**2
    return _folds(calibration.mechanism.law.sd_off_diagonal * square, n)


def folds_of_draft(n: int, columns: int, epsilon: float, delta: float) -> int:
    """The same for a release that is not planned yet, with private constants."""
    mu = gdp_mu(epsilon, delta)
    planned = shares(n, columns, mu)
    left = 1.0 if planned is None else planned.left
    return _folds(TYPICAL_SQUARE * (columns + 1) / (mu * math.sqrt(left)), n)


def _folds(noise_of_sum: float, n: int) -> int:
    """Folds for a noise of the sum of products of scaled columns, and n rows."""
    largest = _NEGLIGIBLE * math.sqrt(n)
    return FOLDS if math.sqrt(FOLDS) * noise_of_sum <= largest else 1
