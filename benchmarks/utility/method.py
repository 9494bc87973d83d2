"""What a method of the comparison is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from benchmarks.utility.data import Dataset
from benchmarks.utility.guarantees import Kind, Privacy
from benchmarks.utility.matrices import Array, Rng

Forms = dict[str, Array]
Draws = Callable[[Dataset, Privacy, Rng, int], Iterator[Forms]]


@dataclass(frozen=True)
class Method:
    """A way to publish a second moment.

    Parameters
    ----------
    name, title, note
        Key in the results, name on the page, and what was adapted, with the source.
    kinds
        Guarantees it can give.
    draws
        Independent releases, each in one or more forms of post-processing: their names and the
        matrices, shape (p, p).
    headline
        Our form that peers are measured against; None for peers.
    repetitions, many_columns
        How often, and how often with more than 100 columns.
    up_to
        The largest epsilon or rho that is measured.
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
        """Repetitions for p columns."""
        return self.many_columns if p > 100 else self.repetitions


def independent_draws(release: Callable[[Dataset, Privacy, Rng], Forms]) -> Draws:
    """Independent draws of a function that releases once."""

    def draws(data: Dataset, privacy: Privacy, rng: Rng, times: int) -> Iterator[Forms]:
        return (release(data, privacy, rng) for _ in range(times))

    return draws
