"""The draw: exact sums and fresh noise become the files of a release."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np

from archive.release import software, write_release
from estimators.denoise import denoise
from tables.accumulate import Accumulated
from tasks.manifest import release_manifest, rows_facts
from tasks.plan import Plan


def draw_into(folder: Path, plan: Plan, sums: Accumulated, release: str) -> None:
    """Draw the noise of a release whose charge is on record, and write it into an empty folder.

    Parameters
    ----------
    folder
        Staged, not yet visible.
    plan
        Mechanism and lattice.
    sums
        The exact Gram matrix and number of rows. Private; only noisy forms of them are written.
    release
        Its id.
    """
    noisy = plan.mechanism.perturb(sums.gram, sums.rows, plan.lattice)
    gram = noisy.gram.astype(np.float64) / plan.lattice.divisor
    count = float(np.trace(gram)) if noisy.rows is None else float(noisy.rows)
    manifest = release_manifest(
        plan.asked,
        release=release,
        published=datetime.datetime.now(datetime.UTC).date().isoformat(),
        rows=rows_facts(plan.asked, plan.mechanism, plan.lattice, count),
        versions=software(),
    )
    raw = gram / manifest.rows.value
    write_release(folder, manifest, raw, denoise(raw, manifest.noise))
