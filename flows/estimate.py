"""Estimate from a published release."""

from __future__ import annotations

from tasks.estimate import estimate as estimate_one
from tasks.policy import private_flow
from tasks.request import AnyEstimator
from tasks.runview import show_estimates, tag


@private_flow
def estimate(release: str, estimates: tuple[AnyEstimator, ...]) -> list[str]:
    """Seal each estimate beside the release; costs no privacy.

    Parameters
    ----------
    release
        ``<dataset>/<release id>``.
    estimates
        Estimators and their settings.

    Returns
    -------
    list of str
        Ids of the estimates.
    """
    dataset, _, name = release.partition("/")
    tag(dataset, name)
    done = [estimate_one(dataset, name, each) for each in estimates]
    show_estimates(dataset, name, done)
    return done
