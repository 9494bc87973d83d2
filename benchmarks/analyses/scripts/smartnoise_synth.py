"""Run by an interpreter that has SmartNoise Synthesizers.

``smartnoise_synth.py SAMPLES.npz FOUND.npz EPSILON DELTA BINS AIM``: synthetic rows for every
sample by MST, or by AIM if AIM is 1; numbers are in equally wide bins between their bounds. Rows
are drawn independently from the model and spread evenly within bins. SmartNoise itself takes the
middle of each bin, and mbi 1.1's default, rounding, correlates columns that are independent in the
model, by up to .3.
"""

import sys

import numpy as np
from snsynth.aim import AIMSynthesizer
from snsynth.mst import MSTSynthesizer
from snsynth.transform import BinTransformer, TableTransformer
from snsynth.utils import cdp_rho

source, target, *options = sys.argv[1:]
epsilon, delta, bins, aim = map(float, options)
with np.load(source) as given:
    samples, levels, (lower, upper) = given["samples"], given["levels"], given["bounds"]
lower, upper = np.where(levels > 0, -0.5, lower), np.where(levels > 0, upper + 0.5, upper)
sizes = np.where(levels > 0, levels, bins).astype(int)

# A share of rho is spent on counts, which a replaced row changes by sqrt(2) instead of 1, so that
# it costs twice its rho; the rest on choices by scores, which it changes by 2 instead of 1.
counted = 0.9 if aim else 2 / 3
wanted, (low, high) = cdp_rho(epsilon, delta) / (2 * counted + 4 * (1 - counted)), (1e-3, epsilon)
for _ in range(50):
    middle = (low + high) / 2
    low, high = (middle, high) if cdp_rho(middle, delta) < wanted else (low, middle)

np.random.seed(1)
names = [f"col{j}" for j in range(len(sizes))]
found = []
for rows in samples:
    columns = [
        BinTransformer(bins=int(size), lower=float(one), upper=float(other))
        for size, one, other in zip(sizes, lower, upper, strict=True)
    ]
    synthesizer = (AIMSynthesizer if aim else MSTSynthesizer)(epsilon=low, delta=delta)
    synthesizer.fit([tuple(row) for row in rows.tolist()], transformer=TableTransformer(columns))
    drawn = synthesizer.synthesizer.synthetic_data(rows=len(rows), method="sample")
    if not aim:
        drawn = synthesizer.undo_compress_fn(drawn)
    indices = drawn.df[names].to_numpy(dtype=float)
    spread = np.where(levels > 0, 0.5, np.random.random(indices.shape))
    found.append(lower + (indices + spread) * (upper - lower) / sizes)
np.savez(target, rows=np.array(found))
