"""The budget of a data set, for its lifetime or for each period of its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from gramercy.schemas import families
from gramercy.schemas.model import Delta, Epsilon, Model
from gramercy.schemas.periods import EXAMPLES, Per, leading_label


class Budget(Model):
    """The limit on the privacy loss of all releases of a data set together.

    Parameters
    ----------
    epsilon, delta
        Guarantee of all releases together: every adaptively chosen sequence of releases is
        (epsilon, delta)-differentially private.
    per
        ``lifetime``, or a period: one budget for each calendar ``year``, ``quarter``, ``month``,
        ISO ``week`` or ``day`` of the *data*, regardless of the time of publication. Each release
        then has the rows of one period, and the guarantee is per row. Not available if persons are
        protected, who may have rows in many periods.
    per_release
        The largest epsilon of a single release, at the budget's delta; default: no limit of its
        own. It is read from the contract at every release, and is not fixed at registration.
    """

    epsilon: Epsilon
    delta: Delta
    per: Per = "lifetime"
    per_release: Epsilon | None = Field(default=None, exclude=True)  # no term of the ledger

    @property
    def failure_share(self) -> float:
        """The share of delta that is set aside for mechanisms that may fail: a tenth."""
        return self.delta / 10


def budget_window(budget: Budget, version: str) -> str:
    """The period of the data whose budget a version is charged to; empty for a lifetime."""
    if budget.per == "lifetime":
        return ""
    label = leading_label(budget.per, version)
    if label is None:
        raise families.PERIOD(
            "version '{version}' does not start with a {per} of the data, but the budget is per "
            "{per}.",
            "Start it with the {per}, such as {example}; for a schedule, write '{{period}}'.",
            version=version,
            per=budget.per,
            example=EXAMPLES[budget.per],
        )
    return label


@dataclass(frozen=True)
class BudgetEffect:
    """The effect of a planned release on the budget."""

    # `charged`: the release would be made and charged; `included`: it would be made, and the charge
    # of the first step of its series includes it; `free`: it already exists; `refused`: it would be
    # refused
    kind: Literal["charged", "included", "free", "refused"]
    words: str  # the effect as a sentence, with a remedy if the release would be refused
