"""What a cumulative series can be asked for, decided before anything is read.

The guarantee of a series is that of its whole window: of fresh Gaussian noise on sums to which
every row belongs in one step for good. What has another guarantee, or would choose something again
at every step, is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from gramercy.mechanisms import registry
from gramercy.mechanisms.mechanism import MOST_SERIES_SCALE, Mechanism
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas import families, wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.errors import RequestError
from gramercy.schemas.request_parts import DeclaredScaling, PrivateScaling


def check_series(contract: Contract, request: Request) -> None:
    """Refuse what no step of a series can have; requests without a series pass."""
    if request.cumulative is None:
        return
    request.cumulative.check(contract.budget.per)
    for problem in _problems(contract, request):
        raise problem


def _problems(contract: Contract, request: Request) -> Iterator[RequestError]:
    mechanism, keys = registry[request.mechanism.name], request.mechanism
    if contract.protected_unit != "row":
        yield families.REQUEST_USE(
            "'cumulative' needs 'privacy_unit: row', and the contract protects a {unit}.",
            "Remove 'cumulative': a person may have rows in many steps, and a cell has no "
            "guarantee in sums.",
            unit=contract.protected_unit,
        )
    if not mechanism.takes_series:
        yield families.REQUEST_USE(
            "'cumulative' cannot be used with '{mechanism}'.",
            "Use 'gaussian' or 'gaussian-iid': only Gaussian noise has one guarantee for all "
            "steps.",
            mechanism=mechanism.name,
        )
    if keys.calibration != "exact":
        yield families.REQUEST_USE(
            "'cumulative' needs 'calibration: exact': no paper gives a scale for all steps "
            "together.",
            "Remove 'calibration'.",
        )
    if request.folds > 1:
        yield families.REQUEST_USE(
            "'folds' cannot be used with 'cumulative'.",
            "Remove 'folds': every row would be in another fold at every step.",
        )
    without_bounds = tuple(contract.columns_without_bounds)
    if isinstance(request.scaling, PrivateScaling):
        yield families.SCALING(
            "'scaling: private' cannot be used with 'cumulative': all steps need the same "
            "constants.",
            "{remedy}",
            remedy=_constants(contract),
        )
    elif isinstance(request.scaling, DeclaredScaling) and without_bounds:
        yield families.SCALING(
            "Columns without bounds need estimated scaling: {columns}. All steps of 'cumulative' "
            "need the same.",
            "{remedy}",
            columns=without_bounds,
            remedy=_constants(contract),
        )


def _constants(contract: Contract) -> str:
    """How all steps can have the same constants."""
    declared = "declare bounds of all columns in the contract, and write 'scaling: declared'"
    if contract.dates_are_for_series:
        return f"{declared[0].upper()}{declared[1:]}."
    return (
        "Publish a release with 'mechanism: {name: marginals, ...}' first, and write 'scaling: "
        f"{{from: RELEASE}}' with its id; or {declared}."
    )


def check_series_noise(mechanism: Mechanism) -> None:
    """Refuse noise that has no Gaussian guarantee, or that is too large to draw."""
    parameters, guarantee = mechanism.parameters, mechanism.guarantee
    if parameters.series is None:
        return
    if guarantee.delta0 > 0 or math.isfinite(guarantee.pure):
        raise families.REQUEST_USE(
            "'cumulative' cannot be used with '{mechanism}'.",
            "Use 'gaussian': only Gaussian noise has one guarantee for all steps.",
            mechanism=mechanism.name,
        )
    units = mechanism.lattice.divisor * parameters.weight_unit / parameters.spread
    scale = mechanism.law.sd_diagonal * units
    if scale > MOST_SERIES_SCALE:
        raise wordings.noise_too_large(mechanism.name, scale)
