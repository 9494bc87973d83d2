"""Compare stated with recomputed content, up to rounding differences between machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gramercy.archive.bundles.package import DESCRIPTOR, read_descriptor
from gramercy.archive.bundles.release_bundle import Array
from gramercy.archive.seal.bundle import SEAL
from gramercy.schemas import families
from gramercy.schemas.errors import BundleError

_SHOWN = 12  # parts of a fact that an error states
# Relative tolerance: eigenvectors differ in their last digits between machines.
_TOLERANCE = 1e-6


def check_facts(place: Path, stated: Mapping[str, Any], recomputed: Mapping[str, Any]) -> None:
    """Compare the facts that a bundle states with those recomputed from the rest of it.

    Raises
    ------
    BundleError
        Naming the guarantee if it differs, otherwise the first key that does.
    """
    keys = {"guarantee": None, **stated, **recomputed}
    for key in keys:
        if not _equal(stated.get(key), recomputed.get(key)):
            raise contradiction(place, key, stated.get(key), recomputed.get(key))


def contradiction(place: Path, key: str, stated: Any, recomputed: Any) -> BundleError:
    """The error for a fact that does not follow from the rest of a bundle, with both values."""
    differing = list(islice(_differing(key, stated, recomputed), _SHOWN))
    differing = differing or [(key, stated, recomputed)]  # a null and an absent key
    return families.CONTRADICTION(
        "{path}: '{key}' does not follow from the rest of the file. Stated: {stated}. "
        "Recomputed: {recomputed}.",
        "Ask the curator for the bundle that was published.",
        path=str(place / DESCRIPTOR),
        key=key,
        stated=tuple(f"{name:.80}={left!r:.80}" for name, left, _ in differing),
        recomputed=tuple(f"{name:.80}={right!r:.80}" for name, _, right in differing),
    )


def _differing(name: str, stated: Any, recomputed: Any) -> Iterator[tuple[str, Any, Any]]:
    """Name and both values of every part of a fact that differs."""
    if isinstance(stated, Mapping) and isinstance(recomputed, Mapping):
        for key in {**stated, **recomputed}:
            yield from _differing(f"{name}.{key}", stated.get(key), recomputed.get(key))
    elif not _equal(stated, recomputed):
        yield name, stated, recomputed


def _equal(left: Any, right: Any) -> bool:
    """Whether two facts are equal; numbers may differ in their last digits between machines."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(_equal(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9)
    return bool(left == right)


def check_no_extra_files(place: Path) -> None:
    """Refuse files that the description does not list."""
    listed = {resource["path"] for resource in read_descriptor(place)["resources"]}
    for path in place.iterdir():
        if path.name not in listed | {DESCRIPTOR} | SEAL:
            raise families.CONTRADICTION(
                "{path} is not listed in datapackage.json.",
                "Ask the curator for the bundle that was published.",
                path=str(path),
            )


def tunings_close(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    """Whether two sets of tuning parameters, which depend on eigenvectors, agree."""
    return left.keys() == right.keys() and all(
        math.isclose(left[key], right[key], rel_tol=1e-5) for key in left
    )


def tables_close(left: pd.DataFrame, right: pd.DataFrame) -> bool:
    """Whether two tables agree, and their numbers to the tolerance of `arrays_close`."""
    if list(left.columns) != list(right.columns) or len(left) != len(right):
        return False
    for name in left.columns:
        if not pd.api.types.is_numeric_dtype(left[name]):
            if left[name].tolist() != right[name].tolist():
                return False
            continue
        # Scores may be infinite, and unknown numbers are NaN.
        a, b = left[name].to_numpy(float), right[name].to_numpy(float)
        finite = np.isfinite(a)
        if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
            return False
        if not arrays_close(a[finite], b[finite]):
            return False
    return True


def arrays_close(left: Array, right: Array | None, scale: float = 0.0) -> bool:
    """Whether two arrays agree to six digits of their largest entry, or of `scale` if larger.

    The scale matters if all entries are rounding errors, which differ between machines.
    """
    if right is None or left.shape != right.shape:
        return False
    tolerance = _TOLERANCE * max(scale, float(np.abs(left).max(initial=0)))
    return bool(np.allclose(left, right, rtol=0, atol=tolerance))
