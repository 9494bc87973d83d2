"""The published estimates of a release by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import pandas as pd

from gramercy.api.habits import estimator_name
from gramercy.api.notebook import html_table
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families

T = TypeVar("T")


class Named(dict[str, T]):
    """Results by name; a wrong name is refused with the names that exist.

    Parameters
    ----------
    owner
        Name of what has the results.
    results
        The results.
    """

    def __init__(self, owner: str, results: Mapping[str, T]) -> None:
        super().__init__(results)
        self.owner = owner

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.owner, dict(self))

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


class EstimateFrames(Named[pd.DataFrame]):
    """The matrices and tables of an estimate, as DataFrames by name."""

    def __missing__(self, name: str) -> pd.DataFrame:
        raise families.UNKNOWN_NAME(
            "The estimate '{estimate}' has no matrix or table '{name}'.",
            "It has, most similar first: {known}.",
            estimate=self.owner,
            name=str(name),
            known=most_similar_first(str(name), self),
        )

    def _repr_html_(self) -> str:
        shapes = {name: " x ".join(map(str, frame.shape)) for name, frame in self.items()}
        return html_table(pd.DataFrame({"shape": shapes}), f"Estimate {self.owner}")


class Estimates(Named[EstimateFrames]):
    """The estimates of a release by id, each with its matrices and tables.

    The name of an estimator, such as ``graphical-lasso`` or ``glasso``, is enough if it has one
    estimate.
    """

    def full_name(self, name: str) -> str:
        """The id of the only estimate of an estimator; otherwise the name as it is."""
        found = [each for each in self if each.rpartition("-")[0] == estimator_name(name)]
        return found[0] if len(found) == 1 and name not in self else name

    def __missing__(self, name: str) -> EstimateFrames:
        if (full := self.full_name(str(name))) in self:
            return self[full]
        raise families.UNKNOWN_NAME(
            "'{release}' has no estimate '{estimate}'.",
            "Estimates, most similar first: {known}.",
            release=self.owner,
            estimate=str(name),
            known=most_similar_first(estimator_name(str(name)), self),
        )

    def _repr_html_(self) -> str:
        contents = {name: ", ".join(frames) for name, frames in self.items()}
        table = pd.DataFrame({"matrices and tables": contents}, dtype=object)
        return html_table(table, f"Estimates of {self.owner}")
