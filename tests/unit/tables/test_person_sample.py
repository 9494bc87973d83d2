"""One row of every person is chosen uniformly, and no other person's rows affect the choice."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from gramercy.mechanisms.sampling import sampler
from gramercy.tables.persons.person_index import PersonSample

SIZES = (7, 300)  # bins of two columns; the second needs two bytes


def rows_of(persons: int, rows: int, seed: int = 0) -> tuple[Any, Any, Any]:
    """Names, bins and keys of rows; the high halves of many keys are equal."""
    rng = np.random.default_rng(seed)
    names = [f"p{k}" if k else None for k in rng.integers(0, persons + 1, rows)]
    bins = np.stack([rng.integers(0, size, rows) for size in SIZES]).astype(np.uint16)
    keys = np.stack([rng.integers(0, 5, rows), rng.permutation(rows)]).astype(np.uint64)
    return names, bins, keys


def sample_of(names: Any, bins: Any, keys: Any) -> PersonSample:
    sample = PersonSample(SIZES)
    add(sample, names, bins, keys)
    return sample


def add(sample: PersonSample, names: Any, bins: Any, keys: Any) -> None:
    sample.add(sample.indices(pa.array(names, pa.string())), bins, keys)


def expected(names: Any, bins: Any, keys: Any) -> tuple[list[list[int]], int]:
    """Histograms of the rows with the least keys, and the number of persons."""
    least: dict[str, tuple[int, int, int]] = {}
    for row, name in enumerate(names):
        if name is not None:
            key = (int(keys[0, row]), int(keys[1, row]), row)
            least[name] = min(key, least.get(name, key))
    chosen = [row for _, _, row in least.values()]
    histograms = [
        np.bincount(column[chosen], minlength=size).tolist()
        for column, size in zip(bins, SIZES, strict=True)
    ]
    return histograms, len(least)


@pytest.mark.parametrize("persons", [1, 40])
def test_row_with_the_least_key_is_kept(persons: int) -> None:
    names, bins, keys = rows_of(persons, 600)
    sample = sample_of(names, bins, keys)
    histograms, count = expected(names, bins, keys)
    assert [each.tolist() for each in sample.histograms()] == histograms
    assert len(sample) == count
    assert sample.rows_without_person == names.count(None)


def test_sample_is_independent_of_order_batches_and_partitions() -> None:
    names, bins, keys = rows_of(40, 600)
    histograms, count = expected(names, bins, keys)
    rng = np.random.default_rng(1)
    for _ in range(20):
        order = rng.permutation(len(names))
        cuts = np.sort(rng.integers(0, len(names), 4))
        parts = [PersonSample(SIZES) for _ in range(3)]
        for part in np.split(order, cuts):
            chosen = [names[row] for row in part]
            add(parts[rng.integers(3)], chosen, bins[:, part], keys[:, part])
        first, second, third = (pickle.loads(pickle.dumps(part)) for part in parts)
        for total in ((first + second) + third, third + (second + first)):
            assert [each.tolist() for each in total.histograms()] == histograms
            assert len(total) == count
            assert total.rows_without_person == names.count(None)


def test_changing_a_person_moves_one_row_of_the_histograms() -> None:
    """The rows of one person are replaced, in any number and at any positions."""
    names, bins, keys = rows_of(30, 400)
    before = sample_of(names, bins, keys).histograms()
    rng, largest = np.random.default_rng(2), 0
    for turn in range(50):
        kept = np.array([row for row, name in enumerate(names) if name != "p4"])
        new_names, new_bins, new_keys = rows_of(0, int(rng.integers(1, 60)), seed=turn + 3)
        joined = [names[row] for row in kept] + ["p4"] * len(new_names)
        order = rng.permutation(len(joined))
        after = sample_of(
            [joined[row] for row in order],
            np.concatenate([bins[:, kept], new_bins], axis=1)[:, order],
            np.concatenate([keys[:, kept], new_keys], axis=1)[:, order],
        ).histograms()
        for first, second in zip(before, after, strict=True):
            moved = second - first
            assert moved.sum() == 0
            assert abs(moved).sum() in {0, 2}
            largest = max(largest, int(abs(moved).sum()))
    assert largest == 2


def test_every_row_of_a_person_is_equally_likely_to_be_kept() -> None:
    """Ten thousand persons with five rows each; the bin is the position among them."""
    persons, rows = 10_000, 5
    names = [f"p{k}" for _ in range(rows) for k in range(persons)]
    bins = np.repeat(np.arange(rows), persons)[None].astype(np.uint16)
    sample = PersonSample((rows,))
    add(sample, names, bins, sampler.random_keys(len(names)))
    (counts,) = sample.histograms()
    assert counts.sum() == persons
    sd = np.sqrt(persons * 0.2 * 0.8)
    assert abs(counts - persons / rows).max() < 7 * sd  # chance fails this once in 10^11 runs
