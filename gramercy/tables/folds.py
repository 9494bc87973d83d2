"""Assignment of rows to folds.

Folds compose in parallel (releasing all of them costs as much as releasing one) only if changing a
row leaves every other row in its fold. A row's position does not ensure that: where a value decides
which file a row is in, changing that value moves the rows that follow. So every row draws its fold
independently at random (`mechanisms.sampling.sampler.uniform_integers`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

FoldNumbers = NDArray[np.int64]
AssignFolds = Callable[[int], FoldNumbers]  # takes a number of rows, returns their folds
