"""Synthetic archives: one real release, copied under many names, and a ledger that charged all.

The copies have descriptions, seals and signatures of their own; their matrices are hard links.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np

from benchmarks.throughput.jobs import inputs
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.seal.bundle import SEAL, SIGNATURE, SUMS, file_digest
from gramercy.archive.seal.signing import sign, steward_key
from gramercy.ledger import journal
from gramercy.ledger.entry import Entry
from gramercy.ledger.journal import append
from gramercy.mechanisms.accounting.composition import Total
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan, make_plan
from gramercy.pipeline.plan.request_files import read_request
from gramercy.pipeline.publish.charging import publish
from gramercy.pipeline.publish.private_table import accumulate
from gramercy.schemas.ledger_history import ChargeState
from gramercy.schemas.model import digest

_MECHANISM = {"name": "gaussian", "epsilon": 0.01, "delta": 1e-9}


def original(folder: Path) -> tuple[Plan, Path]:
    """Publish a small release in the home in use; returns its plan and its folder."""
    table = folder / "table.csv"
    rows, columns = 200, 10
    np.savetxt(
        table,
        inputs.table(rows, columns).T,
        delimiter=",",
        header=",".join(inputs.names(columns)),
        comments="",
    )
    facts = inputs.facts(str(table), rows, columns)
    plan = make_plan(
        Context.default(), read_request(inputs.request(folder, facts, _MECHANISM, "v1"))
    )
    name = publish(Context.default(), plan, accumulate(plan))
    return plan, Context.default().archive.release(plan.contract.id, name)


def grow(plan: Plan, release: Path, names: list[tuple[str, str, int]]) -> None:
    """Add copies of a release to the archive, and their charges to the ledger.

    Parameters
    ----------
    plan, release
        The published release, and its folder.
    names
        Data set, version and number in the data set of each copy, in the order of publication.
    """
    ledger, archive = Context.default().ledger, release.parents[2]
    files = {
        path.name: file_digest(path)
        for path in release.iterdir()
        if path.name not in {*SEAL, DESCRIPTOR}
    }
    key, text = steward_key(archive.parent / "keys"), (release / DESCRIPTOR).read_text()
    sealed = []
    for dataset, version, number in names:
        folder = archive / dataset / f"{version}-r1" / "release"
        folder.mkdir(parents=True)
        for name in files:
            os.link(release / name, folder / name)
        (folder / DESCRIPTOR).write_text(_described(text, dataset, version))
        digests = files | {DESCRIPTOR: file_digest(folder / DESCRIPTOR)}
        sums = "".join(f"{digests[name]}  {name}\n" for name in sorted(digests)).encode()
        (folder / SUMS).write_bytes(sums)
        (folder / SIGNATURE).write_bytes(sign(key, sums))
        sealed.append((dataset, version, number, file_digest(folder / SUMS)))
    totals: dict[str, Total] = {}
    with ledger._writing() as db:  # one transaction, instead of one for every entry
        for dataset, version, number, sha256 in sealed:
            contract = plan.contract.model_copy(update={"id": dataset})
            if number == 1:
                append(db, Entry.registered(contract))
            guarantee = Guarantee(mu=0.01 + 1e-6 * len(totals) + 1e-5 * number)
            before = totals.get(dataset) or journal.total(db, dataset, "")
            totals[dataset] = before.plus(guarantee)
            identity = digest([dataset, version])
            entry = Entry.reserved(
                contract, version, identity, number, 1, guarantee, totals[dataset], plan.key
            )
            append(db, entry)
            for state in (ChargeState.DRAWN, ChargeState.SEALED, ChargeState.PUBLISHED):
                facts = {"sha256": sha256} if state is ChargeState.SEALED else {}
                append(db, Entry.marked(dataset, f"{version}-r1", state, facts))
    Context.default().record_head()


def names(datasets: int, releases: int) -> list[tuple[str, str, int]]:
    """Data set, version and number of this many releases of this many data sets, in turn."""
    numbers = ((k % datasets, 1 + k // datasets) for k in range(releases))
    return [(f"d{dataset:03}", f"v{number}", number) for dataset, number in numbers]


def _described(text: str, dataset: str, version: str) -> str:
    package = json.loads(text)
    package["version"] = package["dp"]["dataset"]["version"] = version
    package["dp"]["dataset"]["id"] = dataset
    package["dp"]["release"] = f"{version}-r1"
    return json.dumps(package, indent=2, ensure_ascii=False) + "\n"
