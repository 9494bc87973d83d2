"""Run by an interpreter with diffprivlib: ``diffprivlib_moments.py ROWS.npz FOUND.npz EPSILON
TIMES``.

Means and variances of columns between -1 and 1; diffprivlib's accountant divides epsilon, with
delta as the slack of advanced composition where that gives more.
"""

import sys

import numpy as np
from diffprivlib import BudgetAccountant
from diffprivlib.tools import mean, var

DELTA = 1e-6

source, target, epsilon, times = sys.argv[1:]
with np.load(source) as given:
    rows = given["rows"]
p = rows.shape[1]
found = np.empty((2, int(times), p))
for k in range(int(times)):
    accountant = BudgetAccountant(float(epsilon), DELTA, slack=DELTA)
    each, _ = accountant.remaining(2 * p)
    each *= 1 - 1e-9
    for j in range(p):
        for i, statistic in enumerate((mean, var)):
            found[i, k, j] = statistic(
                rows[:, j], epsilon=each, bounds=(-1, 1), accountant=accountant
            )
np.savez(target, means=found[0], variances=found[1])
