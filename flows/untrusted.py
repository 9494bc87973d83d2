"""What a run that a Prefect server starts may ask for.

Anyone who can log in to the server, or write to its database, chooses the parameters of a run. So
they are treated as hostile: they name a contract that the steward has registered, and no path,
address or file. What the contract allows is left: versions, mechanisms, estimates, in its limits.
"""

from __future__ import annotations

import re

from gramercy.common.home import minutes_stated
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_files import read_contract
from gramercy.pipeline.plan.request_model import AnyEstimator, Request
from gramercy.schemas import families
from gramercy.schemas.model import SLUG
from gramercy.schemas.request_parts import DaskEngine

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
        raise families.NOT_REGISTERED(
            "key 'dataset': a run that Prefect starts needs the id of a registered contract.",
            "Run 'gramercy register CONTRACT' in the home of the worker, and write the contract's "
            "id.",
        )
    if isinstance(request.engine, DaskEngine) and request.engine.scheduler is not None:
        raise families.DASK(
            "key 'engine': a run that Prefect starts cannot name a scheduler.",
            "Write 'engine: dask', and set DASK_SCHEDULER_ADDRESS for the worker.",
        )
    check_estimates(request.estimates)
    contract = read_contract(path)
    if request.mechanism.arithmetic != "exact" and contract.arithmetic == "exact":
        raise families.ARITHMETIC(
            "key 'mechanism.arithmetic': the contract of '{dataset}' does not allow runs that "
            "Prefect starts to use floating-point noise.",
            "Write 'arithmetic: floating-point' in the contract and register it again; or release "
            "from the command line.",
            dataset=contract.id,
        )


def check_estimates(estimates: tuple[AnyEstimator, ...]) -> None:
    """Refuse more estimates than one run may ask for."""
    if len(estimates) > MOST_ESTIMATES:
        raise families.ESTIMATES(
            "key 'estimates': at most {most} in one run.",
            "Split them into several runs.",
            most=MOST_ESTIMATES,
        )


def estimate_minutes() -> float:
    """After how many minutes a run of estimates or a report is ended.

    Raises
    ------
    RequestError
        If ``GRAMERCY_ESTIMATE_MINUTES`` is not a positive number.
    """
    return minutes_stated("GRAMERCY_ESTIMATE_MINUTES", _MINUTES)
