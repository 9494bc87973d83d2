"""Calibrate the noise of a release, and compute its law and exact guarantee.

Only public facts are used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gramercy import mechanisms
from gramercy.mechanisms.accounting.composition import composed_mu, remaining_mu
from gramercy.mechanisms.accounting.gdp import gdp_mu, subtract_down
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.mechanisms.gaussian import target_mu
from gramercy.mechanisms.histograms import ConstantsNoise, Marginals
from gramercy.mechanisms.mechanism import Additive, Mechanism, PublicParameters
from gramercy.pipeline.plan.public_parameters import public_parameters
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import RequestError
from gramercy.schemas.facts import MAX_ENTRIES, GuaranteeFacts, LevelsFacts, check_group_names
from gramercy.schemas.manifest import ReleaseSpec
from gramercy.schemas.model import finite_or_none, parse
from gramercy.schemas.noise import NoiseLaw
from gramercy.schemas.request_parts import MechanismSpec


@dataclass(frozen=True)
class Calibration:
    """All noise of a release.

    Parameters
    ----------
    mechanism
        The mechanism that publishes the matrix, the rows or the histograms.
    constants_noise
        The noise of the histograms from which the release's own constants are computed; None if the
        constants are known before the release.
    """

    mechanism: Mechanism
    constants_noise: ConstantsNoise | None = None

    @property
    def guarantee(self) -> Guarantee:
        """The exact guarantee of everything that is published.

        Histograms and matrix are adaptive Gaussian mechanisms of one table, whose mu compose to the
        root of their sum of squares; what holds for the mechanism alone, such as its exact profile,
        does not hold for all of them.
        """
        if self.constants_noise is None or isinstance(self.mechanism, Marginals):
            return self.mechanism.guarantee
        alone = self.mechanism.guarantee
        return Guarantee(composed_mu([alone.mu, self.constants_noise.mu]), alone.delta0)

    def noise_of_sum(self, spec: ReleaseSpec) -> float:
        """Standard deviation of an off-diagonal entry of the noisy sum over rows of the unit ball.

        A release of histograms alone has no such sum; its radius suits a matrix of the same mu. Of
        groups it is the noise of one group, relative to as many rows as all groups have together:
        the radius suits groups of equal sizes.
        """
        if isinstance(self.mechanism, Marginals):
            sensitivity = 1.0 if spec.neighbours == "replace-one" else math.sqrt(0.5)
            return sensitivity / self.mechanism.guarantee.mu
        return self.mechanism.law.summed(spec.folds).sd_off_diagonal * spec.groups_count

    def constants(self) -> dict[str, float]:
        """The public constants of all noise by name, for the manifest and the plan."""
        constants = self.mechanism.constants()
        if self.constants_noise is None or isinstance(self.mechanism, Marginals):
            return constants
        return constants | self.constants_noise.constants()


def calibrate(spec: ReleaseSpec) -> Calibration:
    """Calibrate the noise of a release from public facts alone.

    Raises
    ------
    RequestError
        If the mechanism is not defined for such a table.
    GuaranteeRefused
        If the exact guarantee of the noise is weaker than requested.
    """
    mechanism_type = mechanisms.registry[spec.mechanism["name"]]
    requested = mechanism_type.spec.model_validate(spec.mechanism)
    if spec.normalisation.keeps_rows != (mechanism_type.name == "integer-rows"):
        raise families.REQUEST_USE(
            "The normalisation 'whole' and the mechanism 'integer-rows' require each other.",
            "Use both, or neither.",
        )
    parameters = public_parameters(spec)
    estimates_constants = spec.scaling is not None and spec.scaling.kind == "private"
    if mechanism_type is Marginals and not estimates_constants:
        raise families.SCALING(
            "'marginals' estimates the constants itself.",
            "Leave 'scaling' and 'normalisation' out.",
        )
    if estimates_constants and mechanism_type is not Marginals:
        calibration = _with_constants(spec, mechanism_type, requested, parameters)
    else:
        mechanism = mechanism_type.from_spec(requested, parameters)
        noise = mechanism.noise if isinstance(mechanism, Marginals) else None
        calibration = Calibration(mechanism, noise)
    check_guarantee(mechanism_type.name, calibration.guarantee, requested)
    if spec.folds > 1:
        _check_folds(spec, calibration.mechanism)
    if spec.by is not None:
        _check_groups(spec, spec.by, calibration.mechanism)
    return calibration


def _with_constants(
    spec: ReleaseSpec,
    mechanism_type: type[Mechanism],
    requested: MechanismSpec,
    parameters: PublicParameters,
) -> Calibration:
    """Noise for histograms and for the matrix that together have the requested guarantee."""
    name, scaling = mechanism_type.name, spec.scaling
    if not issubclass(mechanism_type, Additive) or requested.calibration != "exact":
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
        )
        left = remaining_mu(total, [noise.mu])  # so that both compose to at most the total
        result = Calibration(_at_mu(mechanism_type, requested, parameters, left), noise)
        exact = result.guarantee
        if requested.epsilon is None or exact.delta(requested.epsilon) <= requested.delta:
            return result
        # The failure probability of the mechanism takes part of delta.
        reduced = gdp_mu(requested.epsilon, subtract_down(requested.delta, exact.delta0))
        total = min(reduced, math.nextafter(total, 0))


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


def _check_folds(spec: ReleaseSpec, mechanism: Mechanism) -> None:
    if not isinstance(mechanism, Additive) or mechanism.law.family not in _CLOSED_UNDER_SUMS:
        raise families.REQUEST_USE(
            "'folds' cannot be used with '{mechanism}'.",
            "Use 'gaussian' or 'gaussian-iid': a sum of their noise is of the same family.",
            mechanism=mechanism.name,
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


def _check_groups(spec: ReleaseSpec, by: LevelsFacts, mechanism: Mechanism) -> None:
    if not isinstance(mechanism, Additive) or mechanism.law.family not in _CLOSED_UNDER_SUMS:
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


_CLOSED_UNDER_SUMS = ("gaussian-isotropic", "gaussian-iid")


def check_guarantee(name: str, exact: Guarantee, requested: MechanismSpec) -> None:
    """Refuse noise whose exact guarantee is weaker than requested.

    Raises
    ------
    GuaranteeRefused
        With the requested and the exact epsilon and delta.
    """
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


def noise_law(mechanism: Mechanism, rows: float, parts: int = 1) -> NoiseLaw:
    """Noise law of a matrix that is the sum over some parts, divided by the number of rows."""
    law = mechanism.law.summed(parts) if parts > 1 else mechanism.law
    return law if mechanism.publishes == "precision" else law.divided_by(rows)


def guarantee_facts(
    exact: Guarantee, delta: float, requested: float | None = None
) -> GuaranteeFacts:
    """A guarantee as mu-GDP, (epsilon, delta)-DP, zCDP and pure DP; see `GuaranteeFacts`.

    Parameters
    ----------
    exact
        The guarantee.
    delta
        Probability at which epsilon is stated.
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
