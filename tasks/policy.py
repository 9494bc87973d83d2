"""Sealed tasks and flows: nothing of what they touch is stored, cached, logged or retried."""

from __future__ import annotations

import copy
import functools
import inspect
import typing
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.utilities.annotations import quote

from schemas.errors import GramercyError, StepFailed
from tasks.progress import announced

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


def private_task(step: Callable[P, R]) -> Callable[P, R]:
    """A Prefect task whose result stays in this process and which never runs twice."""

    @functools.wraps(step)
    def shown(*args: P.args, **kwargs: P.kwargs) -> R:
        with announced(step.__name__):
            return step(*args, **kwargs)

    made = task(
        name=step.__name__,
        persist_result=False,
        cache_policy=NO_CACHE,
        retries=0,
        log_prints=False,
        cache_result_in_memory=False,
    )(sealed(shown))
    run: Callable[..., R] = made

    @functools.wraps(step)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        # Quoted, Prefect hands arguments over as they are and looks for nothing in them.
        return run(*map(quote, args), **{name: quote(value) for name, value in kwargs.items()})

    return call


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
    fresh = copy.copy(error)  # with its attributes, and without traceback, cause and context
    fresh.__suppress_context__ = True
    return fresh
