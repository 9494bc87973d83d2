"""What a run that a Prefect server starts may ask for.

Anyone who can log in to the server, or write to its database, chooses the parameters of a run. So
they are treated as hostile: they name a contract that the steward has registered, and no path,
address or file. What the contract allows is left: versions, mechanisms, estimates, in its limits.
"""

from __future__ import annotations

import contextlib
import math
import os
import re

from gramercy.application.context import Context
from gramercy.application.request_model import AnyEstimator, Request
from gramercy.application.yaml_files import read_contract
from gramercy.schemas.engine import DaskEngine
from gramercy.schemas.model import SLUG
from gramercy.schemas.problems import prefect as problems

MOST_ESTIMATES = 50
_MINUTES = 60.0


def check_request(context: Context, request: Request) -> None:
    """Refuse a request that is for a steward's own command; reads the registered contract only.

    Raises
    ------
    ContractError, RequestError
        If it does not name a registered contract, or asks for more than a run may.
    """
    path = context.home.registered_contract(request.dataset)
    if not re.fullmatch(SLUG, request.dataset) or not path.is_file():
        raise problems.no_registered_contract()
    if isinstance(request.engine, DaskEngine) and request.engine.scheduler is not None:
        raise problems.scheduler_named()
    check_estimates(request.estimates)
    contract = read_contract(path)
    if request.mechanism.arithmetic != "exact" and contract.arithmetic == "exact":
        raise problems.floating_point_not_allowed(contract.id)


def check_estimates(estimates: tuple[AnyEstimator, ...]) -> None:
    """Refuse more estimates than one run may ask for."""
    if len(estimates) > MOST_ESTIMATES:
        raise problems.too_many_estimates(MOST_ESTIMATES)


def estimate_minutes() -> float:
    """After how many minutes a run of estimates or a report is ended.

    Raises
    ------
    RequestError
        If ``GRAMERCY_ESTIMATE_MINUTES`` is not a positive number.
    """
    with contextlib.suppress(ValueError):
        minutes = float(os.environ.get("GRAMERCY_ESTIMATE_MINUTES", _MINUTES))
        if 0 < minutes < math.inf:
            return minutes
    raise problems.minutes_not_positive()
