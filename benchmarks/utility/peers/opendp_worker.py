"""Run by an interpreter that has OpenDP: ``opendp_worker.py ROWS.npz FOUND.npz EPSILON TIMES``."""

import sys

import numpy as np
import opendp.prelude as dp
from opendp.extras.sklearn.decomposition import make_private_pca

dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
source, target, epsilon, times = sys.argv[1:]
rows = np.load(source)["rows"]
n, p = rows.shape
domain = dp.numpy.array2_domain(num_columns=p, size=n, norm=1.0, p=2, origin=np.zeros(p), T=float)
release = make_private_pca(domain, dp.symmetric_distance(), float(epsilon), norm=1.0)
if abs(release.map(2) - float(epsilon)) > 1e-9 * float(epsilon):  # replace one row: distance 2
    raise SystemExit("OpenDP's guarantee differs from the requested one")
found = [release(rows) for _ in range(int(times))]
np.savez(
    target,
    squares=np.array([each.S**2 for each in found]),
    vectors=np.array([each.Vt.T for each in found]),
)
