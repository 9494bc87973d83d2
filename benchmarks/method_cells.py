"""Cells of benchmarks that compare methods, each on several tables at several guarantees."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from benchmarks.measuring import read_lines
from benchmarks.peers import Peer


class _Method(Protocol):
    """A method, with the library that it runs; None for Gramercy."""

    @property
    def peer(self) -> Peer | None: ...


AnyMethod = TypeVar("AnyMethod", bound=_Method)
AnyResult = TypeVar("AnyResult")


@dataclass(frozen=True)
class Cell:
    """The unit of measurement: a method with one guarantee on one table, or samples of it.

    Parameters
    ----------
    table, epsilon, method
        Keys of the benchmark's tables and methods, and the epsilon at delta = 1e-6.
    """

    table: str
    epsilon: float
    method: str

    def generator(self) -> np.random.Generator:
        """Random numbers that depend on the cell only."""
        return np.random.default_rng(zlib.crc32(repr(self).encode()))


def usable(methods: Mapping[str, AnyMethod]) -> dict[str, AnyMethod]:
    """The methods without those of peers whose interpreter is not named, with a message."""
    libraries = dict.fromkeys(each.peer for each in methods.values() if each.peer)
    found = {None, *(peer for peer in libraries if peer.found())}
    return {name: each for name, each in methods.items() if each.peer in found}


def read_results(path: Path, result: Callable[..., AnyResult]) -> dict[Cell, AnyResult]:
    """Read the results in a file, by cell.

    Parameters
    ----------
    path
        The file.
    result
        Makes a result of its cell and the other fields of a line.
    """
    results: dict[Cell, AnyResult] = {}
    for line in read_lines(path):
        fields: dict[str, Any] = dict(line)
        cell = Cell(**fields.pop("cell"))
        results[cell] = result(cell, **fields)
    return results
