"""Whether everything that a request asks for is in the archive already."""

from __future__ import annotations

from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.publish.publishing import replay
from gramercy.pipeline.publish.reporting import report_id


def finished_release(context: Context, plan: Plan) -> str | None:
    """The release that answers a request, if its estimates and its report were sealed as well.

    Then there is nothing to run, and no server of Prefect is needed.

    Returns
    -------
    str or None
        Its release id; None if anything is left to do. Averages of reports are always compared
        with their sources: None.

    Raises
    ------
    GramercyError
        As `publishing.replay` does.
    """
    if plan.averaging or context.existing_ledger is None:
        return None
    archive, dataset = context.archive, plan.contract.id
    charge = context.ledger.find_charge(dataset, plan.key)
    if charge is None or charge.state != "published":
        return None
    estimates = {each.id for each in plan.request.estimates}
    report = archive.report(dataset, charge.release, report_id(sorted(estimates)))
    if not archive.contains(report) or estimates - {*archive.estimates(dataset, charge.release)}:
        return None
    return replay(context, plan)
