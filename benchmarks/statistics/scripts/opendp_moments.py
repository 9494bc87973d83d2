"""Run by an interpreter that has OpenDP: ``opendp_moments.py ROWS.npz FOUND.npz EPSILON TIMES``.

Means and variances of columns between -1 and 1 with Gaussian noise, the same share of rho for each;
OpenDP's own conversion gives epsilon at delta = 1e-6 for one replaced row.
"""

import sys

import numpy as np
import opendp.prelude as dp

DELTA, REPLACED = 1e-6, 2  # one row less and one more

dp.enable_features("contrib")
source, target, epsilon, times = sys.argv[1:]
with np.load(source) as given:
    rows = given["rows"]
n, p = rows.shape


def epsilon_of(rho: float) -> float:
    """Epsilon at delta of rho-zCDP."""
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    noise = space >> dp.m.then_gaussian((0.5 / rho) ** 0.5)
    converted = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(noise), DELTA)
    return float(converted.map(1.0)[0])


rho = dp.binary_search(lambda rho: epsilon_of(rho) <= float(epsilon), bounds=(1e-9, 100.0))
domain = dp.vector_domain(dp.atom_domain(bounds=(-1.0, 1.0), nan=False), size=n)
space = domain, dp.symmetric_distance()
found = []
for exact in (space >> dp.t.then_mean(), space >> dp.t.then_variance(ddof=0)):
    scale = dp.binary_search_param(
        lambda scale, exact=exact: exact >> dp.m.then_gaussian(scale), REPLACED, rho / (2 * p)
    )
    noise = exact.output_space >> dp.m.then_gaussian(scale)
    values = [exact(rows[:, j].tolist()) for j in range(p)]
    found.append([[noise(value) for value in values] for _ in range(int(times))])
np.savez(target, means=found[0], variances=found[1])
