"""Run by an interpreter that has OpenDP: ``opendp_pca.py ROWS.npz FOUND.npz EPSILON TIMES``.

DP-PCA with a private mean and all components, for rows in [-1, 1]^p clipped at a length.
"""

import sys

import numpy as np
import opendp.prelude as dp
from opendp.extras.sklearn.decomposition import make_private_pca

dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
source, target, epsilon, times = sys.argv[1:]
with np.load(source) as given:
    rows, length = np.ascontiguousarray(given["rows"]), float(given["length"])
n, p = rows.shape
domain = dp.numpy.array2_domain(num_columns=p, size=n, T=float)
release = make_private_pca(domain, dp.symmetric_distance(), float(epsilon), norm=length)
if abs(release.map(2) - float(epsilon)) > 1e-9:  # one replaced row: distance 2
    raise SystemExit("OpenDP's guarantee differs from the requested one")
found = [release(rows) for _ in range(int(times))]
np.savez(target, covariances=[(each.Vt.T * each.S**2) @ each.Vt / n for each in found])
