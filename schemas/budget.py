"""The budget of a data set, for its lifetime or for each year of its data."""

from __future__ import annotations

import re
from typing import Literal

from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import Delta, Epsilon, Model

_YEAR = re.compile(r"([0-9]{4})(?![0-9])")


class Budget(Model):
    """The most that all releases of a data set may ever cost together.

    Parameters
    ----------
    epsilon, delta
        Every adaptively chosen sequence of releases is (epsilon, delta)-differentially private.
    per
        ``lifetime``, or ``year``: a budget for every calendar year of the *data*, whatever the
        clock says. A release then has the rows of one year, and the guarantee is for each row. Not
        where persons are protected: they may have rows in many years.
    """

    epsilon: Epsilon
    delta: Delta
    per: Literal["lifetime", "year"] = "lifetime"

    @property
    def failures(self) -> float:
        """The share of delta that is set aside for mechanisms that may fail: a tenth of it."""
        return self.delta / 10


def window_of(budget: Budget, version: str) -> str:
    """The calendar year of the data whose budget a version is charged to; or nothing.

    Raises
    ------
    RequestError
        If budgets are per year, and the version does not say which.
    """
    if budget.per == "lifetime":
        return ""
    year = _YEAR.match(version)
    if year is None:
        raise RequestError(
            f"key 'version': '{version}' does not begin with a year, and the budget is per year "
            "of the data.",
            "Write a version such as 2026 or 2026-W48.",
        )
    return year[1]
