"""Report on a published release, and list it in the catalogue."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from gramercy.flows.untrusted import check_estimates
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_model import AnyEstimator
from gramercy.pipeline.publish import attachments
from gramercy.schemas.errors import RequestError, StepFailed
from gramercy.tasks import steps
from gramercy.tasks.history import attach_report, describe_run
from gramercy.tasks.policy import private_flow, typed_errors_only

look_up = typed_errors_only(attachments.estimate)  # not a step of the run that is shown again


@private_flow
def report(release: str, estimates: tuple[AnyEstimator, ...]) -> str:
    """Seal a report on a release with these estimates, and update the catalogue's pages.

    Both are post-processing, which costs no privacy. Estimates that do not exist yet are made; this
    flow and `flows.estimate` wait for each other. An estimate that cannot be made is left out.

    Parameters
    ----------
    release
        ``<dataset>/<release id>``.
    estimates
        Estimators with their settings.

    Returns
    -------
    str
        Id of the report.
    """
    return _report(release, estimates, pages=True)


def report_without_pages() -> Callable[[str, tuple[AnyEstimator, ...]], str]:
    """The same flow, after which the caller writes the pages, as of several releases at once."""

    @private_flow
    def report(release: str, estimates: tuple[AnyEstimator, ...]) -> str:
        return _report(release, estimates, pages=False)

    return report


def _report(release: str, estimates: tuple[AnyEstimator, ...], *, pages: bool) -> str:
    check_estimates(estimates)
    dataset, _, name = release.partition("/")
    context = Context.default()
    context.archive.release(dataset, name)  # refuses a name that would lead out of the archive
    describe_run(context, dataset, name, release)
    included = []
    try:
        for each in estimates:
            # `flows.estimate` reports why. Other errors, such as a damaged bundle, stop the report.
            with contextlib.suppress(RequestError, StepFailed):
                place = context.archive.estimate(dataset, name, each.id)
                made_before = context.archive.contains(place)
                estimate = look_up if made_before else steps.estimate
                included.append(estimate(context, dataset, name, each))
        made = steps.report(context, dataset, name, included)
        attach_report(context, dataset, name, made)
    finally:
        if pages:
            steps.catalogue(context, dataset, name)
    return made
