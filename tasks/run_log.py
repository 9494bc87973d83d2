"""The log of a run: fixed sentences for each step, and public facts of ledger and archive.

Of the data, it states only what the release publishes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import MappingProxyType

from prefect import get_run_logger
from prefect.context import FlowRunContext, TaskRunContext

SENTENCES = MappingProxyType(
    {
        "replay": "Looking for a release of the same request",
        "copy_table": "Copying the table into a private file",
        "validate": "Validating the table's columns and types",
        "accumulate": "Reading the table",
        "sum_reports": "Reading the reports of the sources",
        "check_same_sources": "Comparing the reports with those of the release",
        "publish": "Charging the budget, drawing the noise, sealing the release",
        "estimate": "Estimating from the release",
        "report": "Writing the report",
        "catalogue": "Writing the pages of the catalogue and the signed listing",
        "audit": "Auditing the ledger, the archive and the run history",
    }
)


@contextlib.contextmanager
def log_step(step: str) -> Iterator[None]:
    """Log the start and the end of a step, within the task that runs it.

    A failure is not logged here: it is the state of the task, with the type of the error.

    Parameters
    ----------
    step
        Name of its function. Steps without a sentence are not logged.
    """
    if step not in SENTENCES or TaskRunContext.get() is None:
        yield
        return
    log = get_run_logger()
    log.info(f"{SENTENCES[step]} ...")
    yield
    log.info(f"{SENTENCES[step]}: done.")


def log_fact(sentence: str) -> None:
    """Log a public fact in the log of the flow's run.

    Parameters
    ----------
    sentence
        A sentence that states only what the ledger or the archive publish.
    """
    if FlowRunContext.get() is not None:
        get_run_logger().info(sentence)
