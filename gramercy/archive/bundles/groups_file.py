"""The matrices of groups: one Parquet file in long form, with the upper triangle of each matrix."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gramercy.archive.bundles.parquet_limits import codes_of, has_schema, read_bounded
from gramercy.schemas import families
from gramercy.schemas.facts import MAX_ENTRIES
from gramercy.schemas.manifest import ReleaseManifest

Array = NDArray[np.float64]

GROUPS = "groups.parquet"
_SCHEMA = pa.schema(
    [
        ("group", pa.string()),
        ("fold", pa.int32()),
        ("row", pa.string()),
        ("col", pa.string()),
        ("value", pa.float64()),
        ("denoised", pa.float64()),
    ]
)
_NUMBERS = ("fold", "value", "denoised")


@dataclass(frozen=True)
class GroupMatrices:
    """The second moments of one group of rows.

    Parameters
    ----------
    level
        Name of the group.
    raw
        The matrix as released; shape (p, p).
    denoised
        The matrix with shrunken eigenvalues; shape (p, p).
    folds
        The matrices of its folds as released, if there are any; shape (p, p) each.
    """

    level: str
    raw: Array
    denoised: Array
    folds: tuple[Array, ...] = ()


def write_groups(folder: Path, names: Sequence[str], groups: Sequence[GroupMatrices]) -> None:
    """Write the matrices of all groups.

    Parameters
    ----------
    folder
        The folder of the release.
    names
        Names of the p columns.
    groups
        The groups, in their order.
    """
    i, j = np.triu_indices(len(names))
    parts = []
    for group in groups:
        matrices = [(0, group.raw, group.denoised)]
        matrices += [(k, fold, np.full_like(fold, np.nan)) for k, fold in enumerate(group.folds, 1)]
        for fold, value, denoised in matrices:
            columns = {
                "group": _repeated(group.level, i.size),
                "fold": pa.array(np.full(i.size, fold, np.int32)),
                "row": pa.array(names, pa.string()).take(pa.array(i)),
                "col": pa.array(names, pa.string()).take(pa.array(j)),
                "value": pa.array(value[i, j]),
                "denoised": pa.array(denoised[i, j], from_pandas=True),
            }
            parts.append(pa.table(columns, schema=_SCHEMA))
    pq.write_table(pa.concat_tables(parts), folder / GROUPS, store_schema=False, compression="none")


def _repeated(text: str, times: int) -> pa.Array:
    return pa.array([text]).take(pa.array(np.zeros(times, np.int64)))


def read_groups(folder: Path, manifest: ReleaseManifest) -> tuple[GroupMatrices, ...]:
    """Read the matrices of all groups of a release; empty without groups.

    Raises
    ------
    BundleError
        If the file does not contain exactly these matrices, with finite numbers.
    """
    if not manifest.groups:
        return ()
    path = folder / GROUPS
    # A file that was tampered with may make Arrow raise anything.
    with contextlib.suppress(Exception):
        return tuple(_groups(path, manifest))
    raise families.CONTENT(
        "{path} does not contain the matrices of the groups that its manifest describes.",
        "Fetch the bundle again from its curator.",
        path=str(path),
    )


def _groups(path: Path, manifest: ReleaseManifest) -> Iterator[GroupMatrices]:
    """The groups; ValueError if the file has others."""
    names = manifest.names
    i, j = np.triu_indices(len(names))
    folds = range(len(manifest.groups[0].fold_rows) + 1)
    count = len(manifest.groups) * len(folds)
    if count * len(names) ** 2 > 2 * MAX_ENTRIES:  # a whole group and its folds
        raise ValueError
    rows = count * i.size
    table = read_bounded(path, rows)
    if not has_schema(table, _SCHEMA):
        raise ValueError
    shape = (len(manifest.groups), len(folds), i.size)
    levels = [group.level for group in manifest.groups]
    expected = {"group": (levels, np.arange(len(levels))[:, None, None]), "row": (names, i)}
    for name, (words, codes) in {**expected, "col": (names, j)}.items():
        if not (codes_of(table[name], words).reshape(shape) == codes).all():
            raise ValueError
    fold, value, denoised = (table[x].to_numpy().reshape(shape) for x in _NUMBERS)
    is_whole = (fold == 0) & np.isfinite(denoised)
    is_fold = (fold > 0) & np.isnan(denoised)
    in_order = bool((fold == np.array(folds)[:, None]).all())
    if not (in_order and np.isfinite(value).all() and (is_whole | is_fold).all()):
        raise ValueError
    for facts, entries, whole in zip(manifest.groups, value, denoised[:, 0], strict=True):
        matrices = np.empty((len(folds) + 1, len(names), len(names)))
        matrices[:, i, j] = matrices[:, j, i] = [*entries, whole]
        raw, *of_folds, whole_denoised = matrices
        yield GroupMatrices(facts.level, raw, whole_denoised, tuple(of_folds))
