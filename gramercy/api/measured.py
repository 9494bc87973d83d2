"""A labelled matrix that knows the errors of its entries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.schemas.errors import RequestError

if TYPE_CHECKING:
    from gramercy.estimators.uncertainty.entries import Entries


class Measured(pd.DataFrame):  # type: ignore[misc]
    """A symmetric matrix as a DataFrame, with the error of every entry.

    Errors add up two variances: of the noise that was added for privacy, by its exact law, and of
    sampling, by a stated law of the rows (see `estimators.uncertainty.row_law`). The truth they
    speak of is the population's, of rows normalised as these were. What is made of it, a part, a
    product or a copy, is a plain DataFrame.

    Parameters
    ----------
    matrix
        Shape (q, q); NaN where nothing is known.
    names
        Of the q columns.
    entries
        Works out the errors, when they are first asked for.

    Examples
    --------
    >>> import gramercy
    >>> told = gramercy.open(archive).latest("toy").second_moment
    >>> told.standard_error.shape
    (3, 3)
    >>> lower, upper = told.interval(0.99)
    >>> list(told.listed().columns)
    ['row', 'column', 'estimate', 'standard_error', 'lower', 'upper']
    """

    def __init__(
        self, matrix: NDArray[np.float64], names: Sequence[str], entries: Callable[[], Entries]
    ) -> None:
        own = np.array(matrix)
        super().__init__(own.copy(), index=list(names), columns=list(names))

        def known() -> Entries:
            whose = list(self.index) == list(names) == list(self.columns)
            if not whose or not np.array_equal(self.to_numpy(), own, equal_nan=True):
                raise RequestError(
                    "This matrix was changed, and its errors are those of another.",
                    "Take it from the release anew, and change a .copy().",
                )
            return entries()

        object.__setattr__(self, "_entries", known)  # pandas would look for a column

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __reduce__(self) -> tuple[Any, ...]:
        return pd.DataFrame, (self.to_numpy(), self.index, self.columns)

    @property
    def _known(self) -> Entries:
        found: Entries = self._entries()
        return found

    @property
    def standard_error(self) -> pd.DataFrame:
        """Standard error of every entry, noise and sampling together; NaN where unknown."""
        return self._frame(self._known.standard_error)

    @property
    def noise_error(self) -> pd.DataFrame:
        """The part of `standard_error` that privacy costs: the noise of the release."""
        return self._frame(self._known.noise)

    @property
    def sampling_error(self) -> pd.DataFrame:
        """The part of `standard_error` that is there without any noise."""
        return self._frame(self._known.sampling)

    def interval(self, level: float = 0.95) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Lower and upper bounds of every entry; the whole range where nothing is known.

        Parameters
        ----------
        level
            Share of such intervals, one at a time, that hold the truth: above 0.5, below 1.

        Raises
        ------
        RequestError
            If `level` is none.
        """
        if not 0.5 < level < 1:
            raise RequestError("level: must lie above 0.5 and below 1.", "Usual is 0.95.")
        lower, upper = self._known.interval(level)
        return self._plain(lower), self._plain(upper)

    def listed(self, level: float = 0.95) -> pd.DataFrame:
        """A line for every pair of columns, and for every column with itself.

        Parameters
        ----------
        level
            See `interval`.

        Returns
        -------
        DataFrame
            ``row``, ``column``, ``estimate``, ``standard_error``, ``lower`` and ``upper``.
        """
        i, j = np.triu_indices(len(self))
        labels = self.index.to_numpy(dtype=object)
        bounds = zip(("lower", "upper"), self.interval(level), strict=True)
        estimate = self._frame(self._known.estimate)
        frames = {"estimate": estimate, "standard_error": self.standard_error, **dict(bounds)}
        numbers = {name: frame.to_numpy()[i, j] for name, frame in frames.items()}
        return pd.DataFrame({"row": labels[i], "column": labels[j], **numbers})

    def _frame(self, values: NDArray[np.float64]) -> pd.DataFrame:
        return self._plain(np.where(self._known.known, values, np.nan))

    def _plain(self, values: NDArray[np.float64]) -> pd.DataFrame:
        return pd.DataFrame(values, index=self.index, columns=self.columns)


def measured(entries: Entries, names: Sequence[str]) -> Measured:
    """What is known of the entries, which are of these columns or of the last of them."""
    values = np.where(entries.known, entries.estimate, np.nan)
    return Measured(values, names[len(names) - len(values) :], lambda: entries)
