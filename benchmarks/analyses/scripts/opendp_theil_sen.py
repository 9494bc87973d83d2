"""Run by an interpreter that has OpenDP: ``opendp_theil_sen.py ROWS.npz FOUND.npz EPSILON``.

Private Theil-Sen regression of samples with one regressor in [-1, 1] and an outcome in [-1, 1].
"""

import sys

import numpy as np
import opendp.prelude as dp
from opendp.extras.sklearn.linear_model._make_private_theil_sen import make_private_theil_sen

dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
source, target, epsilon = sys.argv[1:]
with np.load(source) as given:
    samples, candidates = given["samples"], int(given["candidates"])


def measurement(scale: float) -> dp.Measurement:
    return make_private_theil_sen(
        dp.max_divergence(), (-1.0, 1.0), (-1.0, 1.0), scale=scale, candidates_count=candidates
    )


replaced = 2  # distance of tables that differ in one row
scale = measurement(1.0).map(replaced) / float(epsilon)
release = measurement(scale)
if abs(release.map(replaced) - float(epsilon)) > 1e-6:
    raise SystemExit("OpenDP's guarantee differs from the requested one")
found = np.array([release(np.ascontiguousarray(rows)) for rows in samples])
np.savez(target, slopes=found[:, 0], intercepts=found[:, 1])
