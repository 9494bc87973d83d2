"""Replacements of the sampler: any function, or a tape that returns fixed numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from gramercy.mechanisms.sampling import sampler

Array = np.ndarray[Any, Any]
Request = tuple[str, tuple[float, ...], int]  # the sampler's function, its parameters, and the size
SOURCES = ("rounded_gaussian", "rounded_laplace", "discrete_gaussian", "gaussian", "gamma")


@contextmanager
def patched_sampler(answer: Callable[[str, tuple[float, ...], int], Array]) -> Iterator[None]:
    """Answer every request for noise with `answer(function, parameters, size)`."""
    with pytest.MonkeyPatch.context() as patch:
        for name in SOURCES:
            patch.setattr(
                sampler, name, lambda *arguments, _n=name: answer(_n, arguments[:-1], arguments[-1])
            )
        yield


@dataclass
class Tape:
    """Answers equal requests with equal pseudo-random numbers, and records the requests.

    The numbers are never zero, so that noise scaled by the data, or drawn elsewhere, is noticed.
    """

    requests: list[Request]

    def __call__(self, name: str, parameters: tuple[float, ...], size: int) -> Array:
        rng = np.random.default_rng(len(self.requests))
        self.requests.append((name, parameters, size))
        if name == "gaussian":
            return rng.normal(size=size)
        if name == "gamma":
            return rng.gamma(parameters[0], size=size)
        return np.rint(3 * parameters[0] * rng.normal(size=size)).astype(np.int64)
