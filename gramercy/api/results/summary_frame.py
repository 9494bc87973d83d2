"""A table of numbers that is shown as its author wants it read."""

from __future__ import annotations

from typing import Any

import pandas as pd


class SummaryFrame(pd.DataFrame):  # type: ignore[misc]
    """A DataFrame of numbers, shown with the digits that their errors leave.

    Slices, products and copies are plain DataFrames.

    Parameters
    ----------
    numbers
        The table.
    texts
        How each number is shown; of the same shape and labels.
    """

    texts: pd.DataFrame

    def __init__(self, numbers: pd.DataFrame, texts: pd.DataFrame) -> None:
        super().__init__(numbers.copy())
        # A plain assignment would make pandas look for a column of this name.
        object.__setattr__(self, "texts", texts)

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __reduce__(self) -> tuple[Any, ...]:
        return pd.DataFrame, (self.to_numpy(), self.index, self.columns)

    def __repr__(self) -> str:
        return repr(self.texts)

    def _repr_html_(self) -> str:
        html: str = self.texts.to_html()
        return html
