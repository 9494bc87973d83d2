"""Sealed tasks and flows: nothing of what they touch is stored, cached, logged or retried."""

from __future__ import annotations

import copy
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import Task, flow
from prefect.cache_policies import NO_CACHE
from prefect.utilities.annotations import quote

from gramercy.application.progress import announced
from gramercy.schemas.errors import GramercyError, StepFailed
from gramercy.tasks.run_log import logged

P = ParamSpec("P")
R = TypeVar("R")


def sealed(step: Callable[P, R]) -> Callable[P, R]:
    """Let nothing out of a step but its result and typed errors.

    Prefect logs and pickles exceptions, and their texts, causes and contexts may quote private
    values. Ours never do, and pass, freed of their history; any other becomes the name of its type.
    They are raised outside the handler, so that none carries a context.
    """

    @functools.wraps(step)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        failure: GramercyError
        try:
            return step(*args, **kwargs)
        except GramercyError as known:
            failure = _without_history(known)
        except Exception as unknown:
            failure = StepFailed(f"{step.__name__}: {type(unknown).__name__}.")
        raise failure

    # Prefect validates parameters by the signature, whose names it would look up in this module.
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
_FREE = {"name", "description", "tags", "timeout_seconds"}  # options that store and repeat nothing


class PrivateTask(Task[P, R]):
    """A Prefect task whose arguments and result stay in this process and which never runs twice.

    Parameters
    ----------
    step
        The function. Its exceptions leave the task as `sealed` lets them.
    **options
        Those of a Prefect task that the policy leaves free: name, description, tags, and
        timeout_seconds.
    """

    def __init__(self, step: Callable[P, R], **options: Any) -> None:
        self.step = step

        @functools.wraps(step)
        def shown(*args: P.args, **kwargs: P.kwargs) -> R:
            with announced(step.__name__), logged(step.__name__):
                return step(*args, **kwargs)

        super().__init__(fn=sealed(shown), **{"name": step.__name__, **options, **_POLICY})

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:  # type: ignore[override]
        """Run it; see `prefect.Task`."""
        result: R = super().__call__(*map(quote, args), **_quoted(kwargs))
        return result

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Run it in the task runner of the flow; see `prefect.Task`."""
        waits = {name: kwargs.pop(name) for name in ("return_state", "wait_for") if name in kwargs}
        return super().submit(*map(quote, args), **_quoted(kwargs), **waits)

    def with_options(self, **options: Any) -> PrivateTask[P, R]:
        """The same step with another name, description, tags or timeout.

        Raises
        ------
        TypeError
            If an option would store, cache, log or repeat it.
        """
        if fixed := options.keys() - _FREE:
            raise TypeError(f"a private task has no option {', '.join(sorted(fixed))}")
        mine = {"name": self.name, "description": self.description, "tags": self.tags}
        return PrivateTask(self.step, **mine | {"timeout_seconds": self.timeout_seconds} | options)

    def map(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: elements of arguments would become parameters of runs."""
        raise TypeError("a private task cannot be mapped")

    def apply_async(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: arguments would be stored on the server until a worker takes them."""
        raise TypeError("a private task cannot run in the background")


def _quoted(named: dict[str, Any]) -> Any:
    """So that Prefect hands arguments over as they are, and looks for nothing in them."""
    return {name: quote(value) for name, value in named.items()}


def private_task(step: Callable[P, R]) -> PrivateTask[P, R]:
    """A function as a `PrivateTask`."""
    return PrivateTask(step)


def private_flow(body: Callable[P, R]) -> Callable[P, R]:
    """A Prefect flow under the same policy."""
    made: Any = flow(
        name=body.__name__,
        persist_result=False,
        retries=0,
        log_prints=False,
        cache_result_in_memory=False,
    )(sealed(body))
    typed: Callable[P, R] = made  # a Prefect flow, called like the function it was
    return typed


def _without_history(error: GramercyError) -> GramercyError:
    fresh = copy.copy(error)  # with its attributes
    # Where Dask is loaded, a copied exception keeps its history: it makes tracebacks picklable.
    fresh.__cause__ = fresh.__context__ = None
    return fresh.with_traceback(None)
