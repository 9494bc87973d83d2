"""What a plan would do to the budget, in words that everyone speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Effect:
    """What would become of a release.

    Parameters
    ----------
    kind
        ``charged``: it would be made, and cost; ``free``: it is there already; ``refused``.
    words
        The same in words, with the mend where it would be refused.
    """

    kind: Literal["charged", "free", "refused"]
    words: str
