"""The effect of a planned release on the budget, as plans show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class BudgetEffect:
    """The effect of a planned release on the budget.

    Parameters
    ----------
    kind
        ``charged``: the release would be made and charged; ``free``: it already exists;
        ``refused``: it would be refused.
    words
        The effect as a sentence, with a remedy if the release would be refused.
    """

    kind: Literal["charged", "free", "refused"]
    words: str
