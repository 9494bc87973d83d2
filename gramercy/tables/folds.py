"""Which of several disjoint parts a row belongs to.

Parts compose in parallel, one release of each costing what one costs, only where the change of one
row leaves every other row in its part. A row's place does not do that: where a value decides in
which file a row lies, its change moves the rows behind it. So every row is assigned by fresh
randomness of its own (`mechanisms.sampling.sampler.parts`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Parts = NDArray[np.int64]
Assign = Callable[[int], Parts]  # so many rows: the part of each, independently of all else
