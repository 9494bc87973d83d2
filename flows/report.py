"""Report on a published release, and list it in the catalogue."""

from __future__ import annotations

import contextlib

from gramercy.application.context import Context
from gramercy.application.request_model import AnyEstimator
from gramercy.schemas.errors import RequestError, StepFailed
from gramercy.tasks import steps
from gramercy.tasks.policy import private_flow
from gramercy.tasks.run_artifacts import show_report, tag


@private_flow
def report(release: str, estimates: tuple[AnyEstimator, ...]) -> str:
    """Seal a report beside the release, with these estimates in it; costs no privacy.

    Then write the catalogue's pages that list it.

    The estimates are found, or made: whichever of this flow and `flows.estimate` comes second
    waits for the other. One that cannot be had is left out.

    Parameters
    ----------
    release
        ``<dataset>/<release id>``.
    estimates
        Estimators and their settings.

    Returns
    -------
    str
        Id of the report.
    """
    dataset, _, name = release.partition("/")
    context = Context.default()
    tag(context, dataset, name)
    shown = []
    for each in estimates:
        # The estimate flow says why. A damaged bundle is another matter, and stops the report.
        with contextlib.suppress(RequestError, StepFailed):
            shown.append(steps.estimate(context, dataset, name, each))
    done = steps.report(context, dataset, name, shown)
    show_report(context.archive, dataset, name, done)
    steps.catalogue(context, dataset, name)
    return done
