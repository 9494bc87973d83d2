"""Run by an interpreter with SmartNoise SQL: ``smartnoise_moments.py ROWS.npz FOUND.npz EPSILON
TIMES``.

AVG and VAR of columns between -1 and 1 in one query. SmartNoise's guarantee is for one row more or
less; a replaced row is two such steps, so its epsilon is half, and its delta is divided by
1 + e^(epsilon / 2).
"""

import sys

import numpy as np
import pandas as pd
import snsql
from snsql.sql.odometer import OdometerHeterogeneous

DELTA = 1e-6

source, target, epsilon, times = sys.argv[1:]
with np.load(source) as given:
    rows = given["rows"]
n, p = rows.shape
names = [f"c{j}" for j in range(p)]
columns = {name: {"type": "float", "lower": -1.0, "upper": 1.0} for name in names}
metadata = {"": {"t": {"t": {"row_privacy": True, "rows": n, "censor_dims": False, **columns}}}}
query = "SELECT " + ", ".join(f"AVG({name}), VAR({name})" for name in names) + " FROM t.t"
step = float(epsilon) / 2
step_delta = DELTA / (1 + np.exp(step))


def privacy(each: float) -> snsql.Privacy:
    """Epsilon of every sum and count; half of delta is the odometer's total."""
    return snsql.Privacy(epsilon=each, delta=2 * step_delta)


low, high = 0.0, step
for _ in range(30):
    middle = (low + high) / 2
    odometer = OdometerHeterogeneous(privacy(middle))
    for _ in range(3 * p):  # a sum, a count and a sum of squares of each column
        odometer.spend(snsql.Privacy(epsilon=middle, delta=0.0))
    low, high = (middle, high) if odometer.spent[0] <= step else (low, middle)
private = snsql.from_df(pd.DataFrame(rows, columns=names), privacy=privacy(low), metadata=metadata)
spent, spent_delta = private.get_privacy_cost(query)
if spent > step or spent_delta > step_delta * (1 + 1e-6):
    raise SystemExit("SmartNoise's guarantee differs from the requested one")
inner, _ = private._rewrite(query)
sums = np.stack([rows.sum(axis=0), np.full(p, float(n)), (rows**2).sum(axis=0)], axis=1)
exact = [[symbol.name for symbol in inner._select_symbols], tuple(sums.ravel())]
found = np.array(
    [private.execute(query, pre_aggregated=exact)[1] for _ in range(int(times))], dtype=float
)
np.savez(target, means=found[:, ::2], variances=found[:, 1::2])
