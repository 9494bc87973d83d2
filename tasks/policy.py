"""Private tasks and flows: nothing that they process is stored, cached, logged or retried.

The log of a run has fixed sentences for each step, and public facts of ledger and archive.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Iterator
from types import MappingProxyType
from typing import Any, ParamSpec, TypeVar

from prefect import Task, flow, get_run_logger
from prefect.cache_policies import NO_CACHE
from prefect.context import FlowRunContext, TaskRunContext
from prefect.futures import PrefectFuture
from prefect.utilities.annotations import quote

from gramercy.pipeline.progress import announce_step
from gramercy.schemas import families
from gramercy.schemas.errors import GramercyError

SENTENCES = MappingProxyType(
    {
        "replay": "Looking for a release of the same request",
        "copy_table": "Copying the table into a private file",
        "validate": "Validating the table's columns and types",
        "expectations": "Validating columns and types with Great Expectations",
        "sampled_expectations": "Validating a sample of the rows with Great Expectations",
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

P = ParamSpec("P")
R = TypeVar("R")


def typed_errors_only(step: Callable[P, R]) -> Callable[P, R]:
    """Wrap a step so that it raises Gramercy's own errors only.

    Prefect logs and pickles exceptions, and their texts, causes and contexts may quote private
    values. Gramercy's errors never do: they pass without cause and context. Of any other exception
    only the type is reported. Errors are raised outside the handler, which would add a context.
    """

    @functools.wraps(step)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        failure: GramercyError
        try:
            return step(*args, **kwargs)
        except GramercyError as error:
            failure = error.without_history()
        except Exception as error:
            failure = families.STEP_FAILED(
                "Step '{step}' failed with {error}.",
                "Details are withheld, because they may contain private values.",
                step=step.__name__,
                error=type(error).__name__,
            )
        raise failure

    # Prefect evaluates the names in a signature within this module, which does not import them.
    run.__annotations__ = typing.get_type_hints(step)
    run.__signature__ = inspect.signature(step, eval_str=True)  # type: ignore[attr-defined]
    return run


_POLICY: dict[str, Any] = {
    "persist_result": False,
    "cache_policy": NO_CACHE,
    "retries": 0,
    "log_prints": False,
    "cache_result_in_memory": False,
}
_SAFE_OPTIONS = {"name", "description", "tags", "timeout_seconds"}


class PrivateTask(Task[P, R]):
    """A Prefect task whose arguments and result stay in this process, and that is never retried.

    Parameters
    ----------
    step
        The function; it is wrapped by `typed_errors_only`.
    **options
        Name, description, tags and timeout_seconds, as of a Prefect task.
    """

    def __init__(self, step: Callable[P, R], **options: Any) -> None:
        self.step = step

        @functools.wraps(step)
        def reported(*args: P.args, **kwargs: P.kwargs) -> R:
            with log_step(step.__name__):
                return step(*args, **kwargs)

        settings = {"name": step.__name__, **options, **_POLICY}
        super().__init__(fn=typed_errors_only(reported), **settings)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # type: ignore[override]
        """Run it, and announce it; see `prefect.Task`."""
        with announce_step(self.step.__name__):
            result: R = super().__call__(*map(quote, args), **_quoted(kwargs))
            return result

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Run it next to the steps that follow, without an announcement; see `prefect.Task`."""
        waits = {name: kwargs.pop(name) for name in ("return_state", "wait_for") if name in kwargs}
        return super().submit(*map(quote, args), **_quoted(kwargs), **waits)

    def with_options(self, **options: Any) -> PrivateTask[P, R]:
        """The same step with other options."""
        if fixed := options.keys() - _SAFE_OPTIONS:
            raise TypeError(f"a private task does not take {', '.join(sorted(fixed))}")
        present = {name: getattr(self, name) for name in _SAFE_OPTIONS}
        return PrivateTask(self.step, **present | options)

    def map(self, *args: Any, **kwargs: Any) -> Any:
        """Refused, because elements of arguments would become parameters of runs."""
        raise TypeError("a private task cannot be mapped")

    def apply_async(self, *args: Any, **kwargs: Any) -> Any:
        """Refused, because arguments would be stored on the server until a worker takes them."""
        raise TypeError("a private task cannot run in the background")


def _quoted(arguments: dict[str, Any]) -> Any:
    """Arguments that Prefect passes on without searching them for futures."""
    return {name: quote(value) for name, value in arguments.items()}


def private_task(step: Callable[P, R]) -> PrivateTask[P, R]:
    """A function as a `PrivateTask`."""
    return PrivateTask(step)


def private_flow(body: Callable[P, R]) -> Callable[P, R]:
    """A Prefect flow under the same policy."""
    wrapped: Any = flow(
        name=body.__name__,
        persist_result=False,
        retries=0,
        log_prints=False,
        cache_result_in_memory=False,
    )(typed_errors_only(body))
    typed: Callable[P, R] = wrapped  # a Prefect flow is called like the function
    return typed


@contextlib.contextmanager
def ended_before_the_flow() -> Iterator[list[PrefectFuture[Any]]]:
    """A list for tasks that were submitted: they have ended at the end of the block.

    Prefect cancels what still waits at the end of a flow, and logs it as a crash.
    """
    submitted = list[PrefectFuture[Any]]()
    try:
        yield submitted
    finally:
        for each in submitted:
            each.wait()


@contextlib.contextmanager
def log_step(step: str) -> Iterator[None]:
    """Log the start and the end of a step, by the name of its function, in the task that runs it.

    A failure is not logged here: it is the state of the task, with the type of the error.
    """
    if step not in SENTENCES or TaskRunContext.get() is None:
        yield
        return
    log = get_run_logger()
    log.info(f"{SENTENCES[step]} ...")
    yield
    log.info(f"{SENTENCES[step]}: done.")


def log_fact(sentence: str) -> None:
    """Log in the flow's run a sentence that states only what ledger and archive publish."""
    if FlowRunContext.get() is not None:
        get_run_logger().info(sentence)
