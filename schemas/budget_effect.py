"""The effect of a planned release on the budget, for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class BudgetEffect:
    """The effect of a planned release on the budget.

    Parameters
    ----------
    kind
        ``charged``: it would be made and charged; ``free``: it exists already; ``refused``.
    words
        The same as a sentence, with a remedy if it would be refused.
    """

    kind: Literal["charged", "free", "refused"]
    words: str
