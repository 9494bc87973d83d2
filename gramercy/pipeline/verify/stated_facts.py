"""Compare the facts that a bundle states with those that follow from the rest of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.package import DESCRIPTOR, read_descriptor
from gramercy.archive.seal.bundle import SEAL
from gramercy.schemas import families
from gramercy.schemas.errors import BundleError

_SHOWN = 12  # parts of a fact that an error states


def check_facts(place: Path, stated: Mapping[str, Any], recomputed: Mapping[str, Any]) -> None:
    """Compare the facts that a bundle states with those recomputed from the rest of it."""
    keys = {"guarantee": None, **stated, **recomputed}
    for key in keys:
        if not facts_equal(stated.get(key), recomputed.get(key)):
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
    elif not facts_equal(stated, recomputed):
        yield name, stated, recomputed


def facts_equal(left: Any, right: Any) -> bool:
    """Whether two facts are equal; numbers may differ in their last digits between machines."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(
            facts_equal(left[key], right[key]) for key in left
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(facts_equal, left, right))
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
