"""Report on a published release."""

from __future__ import annotations

from tasks.estimate import estimate
from tasks.policy import private_flow
from tasks.report import report as report_on
from tasks.request import AnyEstimator
from tasks.runview import show_report, tag


@private_flow
def report(release: str, estimates: tuple[AnyEstimator, ...]) -> str:
    """Seal a report beside the release, with these estimates in it; costs no privacy.

    The estimates are found, or made: whichever of this flow and `flows.estimate` comes second
    waits for the other.

    Parameters
    ----------
    release
        ``<dataset>/<release id>``.
    estimates
        Estimators and their settings, in the order in which the report shows them.

    Returns
    -------
    str
        Id of the report.
    """
    dataset, _, name = release.partition("/")
    tag(dataset, name)
    shown = [estimate(dataset, name, each) for each in estimates]
    done = report_on(dataset, name, shown)
    show_report(dataset, name, done)
    return done
