"""Expect a problem by its code and facts, so that no test asserts prose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import ValidationError

from gramercy.schemas.errors import GramercyError, InvalidValue
from gramercy.schemas.model import details_of
from gramercy.schemas.problem import Family, Notice


@dataclass
class Raised:
    """The exception; set when the `with` block has ended."""

    value: Any = None


@dataclass(frozen=True, eq=False)
class like:  # noqa: N801  it is called as a function
    """Equal to every problem of a family that has exactly these facts, in any words."""

    code: str
    facts: dict[str, Any]

    def __init__(self, family: Family[Any], **facts: Any) -> None:
        object.__setattr__(self, "code", family.code)
        object.__setattr__(self, "facts", family("", **facts).facts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GramercyError | Notice | like):
            return NotImplemented
        return (self.code, self.facts) == (other.code, other.facts)

    def __hash__(self) -> int:
        return hash(self.code)


@contextmanager
def raises(problem: Family[Any], key: str | None = None, **facts: object) -> Iterator[Raised]:
    """Expect a problem with these facts, raised itself or as a detail of another.

    Parameters
    ----------
    problem
        The family of the expected problem.
    key
        The key of the file that it is about.
    facts
        Some or all of its facts.
    """
    raised = Raised()
    with pytest.raises((GramercyError, ValidationError)) as caught:
        yield raised
    raised.value = caught.value
    errors = list(_errors_in(caught.value))
    assert problem.code in [each.code for each in errors], caught.value
    matching = [
        each
        for each in errors
        if each.code == problem.code
        and (key is None or (isinstance(each, InvalidValue) and each.key == key))
        and facts.items() <= each.facts.items()
    ]
    assert matching, [(getattr(each, "key", ""), each.facts) for each in errors]
    assert all(isinstance(each, problem.kind) for each in matching)


@contextmanager
def refuses(key: str) -> Iterator[None]:
    """Expect that the value of a key is refused, for any reason."""
    with pytest.raises((GramercyError, ValidationError)) as caught:
        yield
    keys = [getattr(each, "key", "") for each in _errors_in(caught.value)]
    assert any(each.split(".")[0] == key for each in keys), keys


def _errors_in(error: GramercyError | ValidationError) -> Iterator[GramercyError]:
    if isinstance(error, ValidationError):
        yield from details_of(error)
    else:
        yield error
        yield from error.details
