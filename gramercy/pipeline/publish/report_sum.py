"""Sum the noisy reports of several sources, from their sealed bundles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gramercy.archive.bundles.release_bundle import ReleaseBundle, read_release
from gramercy.archive.seal.bundle import file_digest
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.planning import Plan
from gramercy.schemas import families
from gramercy.schemas.model import digest
from gramercy.schemas.publications import REPORTS

# Facts that all sources must share, so that their reports can be summed.
_SHARED_FACTS = ("columns", "intercept", "neighbours", "privacy_unit", "normalisation", "mechanism")


@dataclass(frozen=True)
class ReportSum:
    """The sum of noisy reports."""

    total: NDArray[np.float64]  # the sum of all reports; shape (p, p)
    rows: int  # number of reports
    sources: dict[str, str]  # the releases with the reports, and the checksums of their SHA256SUMS

    @property
    def fingerprint(self) -> str:
        """Digest of the sources."""
        return digest(self.sources)


def sum_reports(plan: Plan, places: Sequence[str]) -> ReportSum:
    """Read and verify reports, and sum them."""
    total, rows = np.zeros((plan.columns, plan.columns)), 0
    sources, datasets, digests = dict[str, str](), set[str](), set[str]()
    for place in map(Path, places):
        bundle = read_release(place)
        _check_compatible(plan, place, bundle)
        facts = bundle.manifest
        rows_digest = file_digest(place / str(facts.publication.rows_file))
        if facts.dataset.id in datasets or rows_digest in digests:
            raise families.REPORTS(
                "{path}: the reports of '{dataset}' are given twice.",
                "Name one release of each source: counting a person twice doubles their privacy "
                "loss.",
                path=str(place),
                dataset=facts.dataset.id,
            )
        datasets.add(facts.dataset.id)
        digests.add(rows_digest)
        sources[f"{facts.dataset.id}/{facts.release}"] = bundle.sha256
        total += bundle.raw * facts.rows.value
        rows += round(facts.rows.value)
    if rows != plan.contract.rows:
        raise families.REPORTS(
            "There are {reports} reports, but the contract's 'rows' is {rows}.",
            "Name all sources, or correct the contract.",
            reports=rows,
            rows=plan.contract.rows,
        )
    return ReportSum(total, rows, sources)


def check_same_sources(context: Context, plan: Plan, release: str, places: Sequence[str]) -> None:
    """Check that the published average of this request was made from these reports."""
    place = context.archive.release(plan.contract.id, release)
    averaged = set(read_release(place).manifest.sources.values())
    if averaged != {read_release(Path(each)).sha256 for each in places}:
        raise families.REPORTS(
            "This request was already published as '{release}', from other reports.",
            "Use another version; it is a new charge.",
            release=f"{plan.contract.id}/{release}",
        )


def _check_compatible(plan: Plan, place: Path, bundle: ReleaseBundle) -> None:
    if bundle.manifest.publication is not REPORTS:
        raise families.REPORTS(
            "{path} does not contain reports.",
            "Name releases that 'gramercy randomize' made.",
            path=str(place),
        )
    theirs, requested = bundle.manifest.model_dump(), plan.spec.model_dump()
    for key in _SHARED_FACTS:
        if theirs[key] != requested[key]:
            if key == "columns":
                raise families.REPORTS(
                    "{path}: the columns of its reports differ from those of the request.",
                    "Sources and server must use the same columns, bounds and scales.",
                    path=str(place),
                )
            raise families.REPORTS(
                "{path}: its reports were made with {key}: {theirs}, and the request has {key}: "
                "{requested}.",
                "Sources and server must use the same value.",
                path=str(place),
                key=key,
                theirs=str(theirs[key]),
                requested=str(requested[key]),
            )
