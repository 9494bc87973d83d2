"""The description of a compared method."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.arrays import Array, Rng
from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import Kind, Privacy

Forms = dict[str, Array]
Draws = Callable[[Dataset, Privacy, Rng, int], Iterator[Forms]]


@dataclass(frozen=True)
class Method:
    """A way to publish a second moment.

    Parameters
    ----------
    name, title, note
        Key in the results, name on the page, and a note on source and adaptations.
    kinds
        Kinds of guarantee that it supports.
    draws
        Independent releases, each in one or more forms of post-processing: their names and the
        matrices, shape (p, p).
    headline
        Gramercy's form that peers are compared with; None for peers.
    repetitions, many_columns
        Numbers of repetitions, with up to 100 columns and with more.
    up_to
        The largest measured epsilon or rho.
    """

    name: str
    title: str
    note: str
    kinds: tuple[Kind, ...]
    draws: Draws
    headline: str | None = None
    repetitions: int = 30
    many_columns: int = 30
    up_to: float = math.inf

    def repeats(self, p: int) -> int:
        """Number of repetitions for p columns."""
        return self.many_columns if p > 100 else self.repetitions


def independent_draws(release: Callable[[Dataset, Privacy, Rng], Forms]) -> Draws:
    """Turn a function for one release into a stream of independent releases."""

    def draws(data: Dataset, privacy: Privacy, rng: Rng, times: int) -> Iterator[Forms]:
        return (release(data, privacy, rng) for _ in range(times))

    return draws
