"""Gather noisy reports from the bundles in which their sources have sealed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramercy.application.context import Context
from gramercy.application.planning import Plan
from gramercy.archive.bundle import file_digest
from gramercy.archive.release_bundle import ReleaseBundle, read_release, rows_file
from gramercy.schemas.errors import RequestError
from gramercy.schemas.model import digest

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
        If one holds no reports, or was made another way, or two are of one data set, or there are
        not as many reports as the contract has rows.
    """
    total, rows = np.zeros((plan.columns, plan.columns)), 0
    sources, people = dict[str, str](), set[str]()
    for place in map(Path, places):
        bundle = read_release(place)
        _refuse_other(plan, place, bundle)
        facts = bundle.manifest
        reports = file_digest(place / str(rows_file(facts)))
        if facts.dataset.id in people or reports in people:
            raise RequestError(
                f"{place}: reports of '{facts.dataset.id}' are given twice.",
                "Its people would be in the average twice, and protected half: name one release.",
            )
        people |= {facts.dataset.id, reports}
        sources[f"{facts.dataset.id}/{facts.release}"] = bundle.sha256
        total += bundle.raw * facts.rows.value
        rows += round(facts.rows.value)
    if rows != plan.contract.rows:
        raise RequestError(
            f"There are {rows} reports, and the contract's 'rows' is {plan.contract.rows}.",
            "Gather all of them, or correct the contract.",
        )
    return Gathered(total, rows, sources)


def refuse_other_sources(context: Context, plan: Plan, release: str, places: Sequence[str]) -> None:
    """Refuse to answer with the average of other reports than those that are given.

    Raises
    ------
    RequestError
        If the published average is of others.
    """
    place = context.archive.release(plan.contract.id, release)
    averaged = set(read_release(place).manifest.sources.values())
    if averaged != {read_release(Path(each)).sha256 for each in places}:
        raise RequestError(
            f"'{plan.contract.id}/{release}' answers this request already, with the average of "
            "other reports.",
            "Give another version; it is a new charge.",
        )


def _refuse_other(plan: Plan, place: Path, bundle: ReleaseBundle) -> None:
    facts, asked = bundle.manifest.model_dump(), plan.asked.model_dump()
    if bundle.manifest.kind != "reports":
        raise RequestError(f"{place}: holds no reports.", "Name releases of 'gramercy randomize'.")
    other = [key for key in _ALIKE if facts[key] != asked[key]]
    if other:
        told = "" if other[0] == "columns" else f": {facts[other[0]]}, and not {asked[other[0]]}"
        raise RequestError(
            f"{place}: its reports were made with another '{other[0]}' than is asked for{told}.",
            "Sources and server must agree on it.",
        )
