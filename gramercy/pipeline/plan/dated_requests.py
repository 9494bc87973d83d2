"""The version of a request at a moment: dates and the period of the data filled in."""

from __future__ import annotations

import datetime

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.yaml_files import read_contract


def dated_request(context: Context, request: Request, moment: datetime.datetime) -> Request:
    """The request with its version filled in.

    Parameters
    ----------
    context
        The home that contains the contracts.
    request
        The request; its version may have directives such as ``%Y`` and the placeholder
        ``{period}``.
    moment
        The time for which the release is scheduled. ``{period}`` becomes the request's `period`,
        or the last one that was complete then: it depends on no later time, so a retry is for the
        same period.

    Raises
    ------
    ContractError, RequestError
        If the contract cannot be read; if it has no periods, or the request names another one than
        its version.
    """
    if not request.names_period:
        return request.at(moment)
    contract = read_contract(context.home.contract(request.dataset))
    return request.in_period(contract, moment)
