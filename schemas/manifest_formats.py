"""Names of manifest keys by format: earlier bundles keep the names they were sealed with.

The rest of the code uses the present names only. Reading a manifest translates the names of an
earlier format to the present ones. Verification translates back, to compare with the sealed file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMING_FORMAT = 7

# For each object, by its path: present names of keys, and their names before format 7.
_RENAMED: dict[tuple[str, ...], dict[str, str]] = {
    (): {"privacy_unit": "unit", "trace_bound": "trace", "date": "on"},
    ("budget",): {"failure_share": "failures"},
    ("rows",): {"observed": "seen"},
    ("fold_rows",): {"observed": "seen"},
    ("calibration", "lattice"): {"shrinkage": "shrink"},
    ("guarantee",): {"pure_epsilon": "pure", "profile": "curve"},
}
_FORMER = {path: {old: new for new, old in names.items()} for path, names in _RENAMED.items()}


def with_present_names(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a manifest of any format, under the present names."""
    return _renamed(facts, _FORMER) if _is_former(facts.get("format")) else dict(facts)


def with_stated_names(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts of a manifest, under the names of the format that it states."""
    return _renamed(facts, _RENAMED) if _is_former(facts.get("format")) else dict(facts)


def _is_former(stated: object) -> bool:
    return isinstance(stated, int) and stated < RENAMING_FORMAT


def _renamed(
    facts: Any, names: Mapping[tuple[str, ...], Mapping[str, str]], path: tuple[str, ...] = ()
) -> Any:
    if isinstance(facts, list | tuple):
        return [_renamed(each, names, path) for each in facts]
    if not isinstance(facts, Mapping) or not any(known[: len(path)] == path for known in names):
        return facts
    return {
        names.get(path, {}).get(key, key): _renamed(value, names, (*path, key))
        for key, value in facts.items()
    }
