"""Where the indicators of a row's missing cells are cut off, from published shares."""

from __future__ import annotations

import math
from collections.abc import Sequence

_COLUMNS = 2  # with missing cells: in one alone, nothing is missing together
_ROOM = 2.0  # standard deviations of the number of missing cells of a row
_NOISE = 0.005  # of a share of rows: more room costs nothing below it


def missing_cut(present: Sequence[float], rows: float, noise: float) -> float | None:
    """Choose the largest squared norm of the indicators of a row's missing cells.

    Parameters
    ----------
    present
        Published share of rows with a value, of each column: 1 where no missing cells are seen.
    rows
        Number of rows or persons.
    noise
        Standard deviation of the noise off the diagonal of the sum of rows in the unit ball, of
        about the mechanism that publishes them.

    Returns
    -------
    float or None
        The cut, rounded to three digits; None without missing cells in two columns.

    Notes
    -----
    The noise of the share of rows in which two cells are missing is proportional to the cut. So the
    cut is the number of columns with missing cells, which cuts nothing, as far as this noise stays
    below .005; but at least two standard deviations above the mean number of missing cells of a
    row, if they were independent.
    """
    missing = [1 - share for share in present if share < 1]
    if len(missing) < _COLUMNS:
        return None
    mean = math.fsum(missing)
    room = max(mean + _ROOM * math.sqrt(mean), _NOISE * rows / (2 * noise))
    return float(f"{min(room, len(missing)):.3g}")
