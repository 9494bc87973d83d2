"""The budget of a data set, for its lifetime or for each year of its data."""

from __future__ import annotations

import re
from typing import Literal

from gramercy.schemas.model import Delta, Epsilon, Model
from gramercy.schemas.problems.request import version_without_year

_YEAR = re.compile(r"([0-9]{4})(?![0-9])")


class Budget(Model):
    """The limit on the privacy loss of all releases of a data set together.

    Parameters
    ----------
    epsilon, delta
        Guarantee of all releases together: every adaptively chosen sequence of releases is
        (epsilon, delta)-differentially private.
    per
        ``lifetime``, or ``year``: one budget for each calendar year of the *data*, regardless of
        the time of publication. Each release then has the rows of one year, and the guarantee is
        per row. Not available if persons are protected, who may have rows in many years.
    """

    epsilon: Epsilon
    delta: Delta
    per: Literal["lifetime", "year"] = "lifetime"

    @property
    def failure_share(self) -> float:
        """The share of delta that is set aside for mechanisms that may fail: a tenth."""
        return self.delta / 10


def budget_window(budget: Budget, version: str) -> str:
    """The calendar year of the data whose budget a version is charged to; empty for a lifetime.

    Raises
    ------
    RequestError
        If budgets are per year, and the version does not start with a year.
    """
    if budget.per == "lifetime":
        return ""
    year = _YEAR.match(version)
    if year is None:
        raise version_without_year(version)
    return year[1]
