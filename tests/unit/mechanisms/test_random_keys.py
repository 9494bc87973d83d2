"""Random keys have 128 independent, balanced bits."""

from __future__ import annotations

import numpy as np

from gramercy.mechanisms.sampling import sampler


def test_bits_of_random_keys_are_balanced() -> None:
    keys = sampler.random_keys(5_000)
    assert (keys.shape, keys.dtype) == ((2, 5_000), np.uint64)
    bits = np.stack([(half >> np.uint64(k)) & np.uint64(1) for half in keys for k in range(64)])
    shares = bits.astype(float) @ bits.T.astype(float) / bits.shape[1]
    sd = np.sqrt(1 / bits.shape[1])
    assert abs(np.diag(shares) - 0.5).max() < 0.5 * 8 * sd
    pairs = shares[~np.eye(128, dtype=bool)]  # both bits are 1 in a quarter of the keys
    assert abs(pairs - 0.25).max() < 0.44 * 8 * sd


def test_no_keys_for_no_rows() -> None:
    assert sampler.random_keys(0).shape == (2, 0)
