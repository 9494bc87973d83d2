"""Run by an interpreter with diffprivlib: ``diffprivlib_pca.py ROWS.npz FOUND.npz EPSILON TIMES``.

DP-PCA with a private mean and all components, for rows in [-1, 1]^p clipped at a length.
"""

import sys

import numpy as np
from diffprivlib.models import PCA

source, target, epsilon, times = sys.argv[1:]
with np.load(source) as given:
    rows, length = given["rows"], float(given["length"])
found = []
for _ in range(int(times)):
    model = PCA(epsilon=float(epsilon), data_norm=length, bounds=(-1, 1)).fit(rows)
    found.append((model.components_.T * model.explained_variance_) @ model.components_)
np.savez(target, covariances=found)
