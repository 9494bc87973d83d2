"""Whether what is stated and what is computed again agree, to the digits that machines share."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pandas as pd

from gramercy.archive.bundle import SEAL
from gramercy.archive.package import DESCRIPTOR, read_descriptor
from gramercy.archive.release_bundle import Array
from gramercy.schemas.errors import BundleError
from gramercy.schemas.manifest import FORMAT, EstimateManifest, ReleaseManifest, ReportManifest

Manifest = TypeVar("Manifest", ReleaseManifest, EstimateManifest, ReportManifest)

# Eigenvectors differ in their last digits between machines; what follows from them agrees to this.
_SAME = 1e-6


def agree(place: Path, stated: Mapping[str, Any], again: Mapping[str, Any]) -> None:
    """Compare what a bundle states with what follows from the rest of it."""
    differing = [key for key in {**stated, **again} if not _same(stated.get(key), again.get(key))]
    if differing:
        raise BundleError(
            f"{place / DESCRIPTOR}: '{differing[0]}' does not follow from the rest of it."
        )


def _same(one: Any, other: Any) -> bool:
    """Whether two facts agree, numbers but for what another machine's last digits may be."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return bool(one == other)


def no_more_than_listed(place: Path) -> None:
    """Refuse files that the descriptor does not list."""
    listed = {resource["path"] for resource in read_descriptor(place)["resources"]}
    for path in place.iterdir():
        if path.name not in listed | {DESCRIPTOR} | SEAL:
            raise BundleError(f"{path}: is no part of a release.")


def near(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    """Whether numbers that follow from eigenvectors agree."""
    return one.keys() == other.keys() and all(
        math.isclose(one[key], other[key], rel_tol=1e-5) for key in one
    )


def same_table(one: pd.DataFrame, other: pd.DataFrame) -> bool:
    """Whether two tables agree, numbers as `close` has it."""
    if list(one.columns) != list(other.columns) or len(one) != len(other):
        return False
    for name in one.columns:
        if not pd.api.types.is_numeric_dtype(one[name]):
            if one[name].tolist() != other[name].tolist():
                return False
            continue
        # A score may be infinite, and a number that is not known is NaN.
        here, there = one[name].to_numpy(float), other[name].to_numpy(float)
        known = np.isfinite(here)
        same = np.array_equal(here[~known], there[~known], equal_nan=True)
        if not (same and close(here[known], there[known])):
            return False
    return True


def close(one: Array, other: Array | None, scale: float = 0.0) -> bool:
    """Whether two arrays agree to six digits of their largest entry, or of `scale` if that is more.

    Where all entries are rounding errors, they have no digits in common on two machines.
    """
    if other is None or one.shape != other.shape:
        return False
    tolerance = _SAME * max(scale, float(np.abs(one).max(initial=0)))
    return bool(np.allclose(one, other, rtol=0, atol=tolerance))


def as_of(stated: Manifest, again: Manifest) -> Manifest:
    """What follows, as the format that is stated has it: the words of a card have changed since."""
    if stated.format == FORMAT:
        return again
    kept: dict[str, Any] = {"format": stated.format}
    if isinstance(stated, ReleaseManifest):
        kept["card"] = stated.card
    return again.model_copy(update=kept)
