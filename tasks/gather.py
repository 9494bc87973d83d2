"""Gather noisy reports from the bundles in which their sources have sealed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from archive.release import ReleaseBundle, read_release
from schemas.errors import RequestError
from schemas.model import digest
from tasks.plan import Plan
from tasks.policy import private_task

# What every source has to have done alike, for its reports to be added to those of others.
_ALIKE = ("columns", "intercept", "neighbours", "unit", "normalisation", "mechanism")


@dataclass(frozen=True)
class Gathered:
    """Reports added up.

    Parameters
    ----------
    total
        The sum over all reports; shape (p, p).
    rows
        How many there are.
    sources
        The releases that hold them, and the digests of their SHA256SUMS.
    """

    total: NDArray[np.float64]
    rows: int
    sources: dict[str, str]

    @property
    def fingerprint(self) -> str:
        """Digest of the sources."""
        return digest(self.sources)


@private_task
def gather(plan: Plan, places: Sequence[str]) -> Gathered:
    """Read and verify reports, and add them up.

    Parameters
    ----------
    plan
        What the server asks for.
    places
        Folders of sealed releases of reports.

    Raises
    ------
    BundleError
        If one is not what was sealed.
    RequestError
        If one holds no reports, or was made another way, or two are the same, or there are not as
        many reports as the contract has rows.
    """
    total, rows, sources = np.zeros((plan.columns, plan.columns)), 0, dict[str, str]()
    for place in map(Path, places):
        bundle = read_release(place)
        _refuse_other(plan, place, bundle)
        if bundle.sha256 in sources.values():
            raise RequestError(f"{place}: these reports are given twice.", "Name them once.")
        facts = bundle.manifest
        sources[f"{facts.dataset.id}/{facts.release}#{len(sources) + 1}"] = bundle.sha256
        total += bundle.raw * facts.rows.value
        rows += round(facts.rows.value)
    if rows != plan.contract.rows:
        raise RequestError(
            f"There are {rows} reports, and the contract's 'rows' is {plan.contract.rows}.",
            "Gather all of them, or correct the contract.",
        )
    return Gathered(total, rows, sources)


def _refuse_other(plan: Plan, place: Path, bundle: ReleaseBundle) -> None:
    facts, asked = bundle.manifest.model_dump(), plan.asked.model_dump()
    if bundle.manifest.kind != "reports":
        raise RequestError(f"{place}: holds no reports.", "Name releases of 'gramercy randomize'.")
    other = [key for key in _ALIKE if facts[key] != asked[key]]
    if other:
        raise RequestError(
            f"{place}: its reports were made with other {other[0]} than this request has.",
            "Sources and server must agree on it.",
        )
