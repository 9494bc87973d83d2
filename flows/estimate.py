"""Estimate from a published release."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from gramercy.flows.untrusted import check_estimates
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_model import AnyEstimator
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError
from gramercy.tasks import steps
from gramercy.tasks.history import attach_estimates, describe_run
from gramercy.tasks.policy import private_flow


@private_flow
def estimate(release: str, estimates: tuple[AnyEstimator, ...]) -> list[str]:
    """Make and seal each estimate of a release: post-processing, which costs no privacy.

    Parameters
    ----------
    release
        ``<dataset>/<release id>``.
    estimates
        Estimators with their settings.

    Returns
    -------
    list of str
        Ids of the estimates.

    Raises
    ------
    RequestError
        Naming the estimates that could not be made, after all others were.
    """
    return _estimate(release, estimates, pages=True)


def estimate_without_pages() -> Callable[[str, tuple[AnyEstimator, ...]], list[str]]:
    """The same flow, after which the caller writes the pages, as of several releases at once."""

    @private_flow
    def estimate(release: str, estimates: tuple[AnyEstimator, ...]) -> list[str]:
        return _estimate(release, estimates, pages=False)

    return estimate


def _estimate(release: str, estimates: tuple[AnyEstimator, ...], *, pages: bool) -> list[str]:
    check_estimates(estimates)
    dataset, _, name = release.partition("/")
    context = Context.default()
    context.archive.release(dataset, name)  # refuses a name that would lead out of the archive
    describe_run(context, dataset, name, release)
    made, failures = [], []
    for each in estimates:
        try:
            made.append(steps.estimate(context, dataset, name, each))
        except GramercyError as error:  # the other estimates are made nevertheless
            failures.append((each.name, f"{each.name}: {error.message} ({error.code})"))
    attach_estimates(context.archive, dataset, name, made)
    if pages:
        with contextlib.suppress(GramercyError):  # the report writes its pages again
            steps.catalogue(context, dataset, name)
    if failures:
        names, errors = zip(*failures, strict=True)
        raise families.ESTIMATES_FAILED(
            "Some estimates could not be made: {failures}",
            estimates=names,
            failures="; ".join(errors),
        )
    return made
