"""Estimate from a published release."""

from __future__ import annotations

from gramercy.application.context import Context
from gramercy.application.request_model import AnyEstimator
from gramercy.schemas.errors import GramercyError, RequestError
from gramercy.tasks import steps
from gramercy.tasks.policy import private_flow
from gramercy.tasks.run_artifacts import show_estimates, tag


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

    Raises
    ------
    RequestError
        Naming those that could not be made, once all others are.
    """
    dataset, _, name = release.partition("/")
    context = Context.default()
    tag(context, dataset, name)
    done, failures = [], []
    for each in estimates:
        try:
            done.append(steps.estimate(context, dataset, name, each))
        except GramercyError as failure:  # one that cannot be had stops no other
            failures.append(f"{each.name}: {failure}")
    show_estimates(context.archive, dataset, name, done)
    if failures:
        raise RequestError("; ".join(failures))
    return done
