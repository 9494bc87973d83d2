"""The bundles attached to a release: estimates, reports, and a notice of withdrawal."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.archive.bundles.descriptions import read_withdrawal
from gramercy.archive.bundles.estimate_bundle import EstimateBundle, read_estimate
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.report_bundle import PAGE, read_report
from gramercy.archive.store.archive import Archive
from gramercy.schemas import wordings
from gramercy.schemas.errors import BundleError
from gramercy.schemas.listing import ListingEntry


@dataclass(frozen=True)
class Attachments:
    """The bundles attached to a release, each verified before it is used.

    Parameters
    ----------
    archive, dataset, release
        The archive, and the name of the release in it.
    sha256
        Digest of the SHA256SUMS of the release, which every attached bundle states.
    listed
        Its entry in the signed listing, if the listing names it.
    """

    archive: Archive
    dataset: str
    release: str
    sha256: str
    listed: ListingEntry | None = None

    def estimates(self) -> dict[str, EstimateBundle]:
        """All estimates, by id.

        Raises
        ------
        BundleError
            If one is missing, differs from what was sealed or listed, or is of another release.
        """
        bundles = {}
        listed = self.listed.estimates if self.listed else {}
        for name in sorted({*self.archive.estimates(self.dataset, self.release), *listed}):
            place = self.archive.estimate(self.dataset, self.release, name)
            with self.archive.rewrite_paths_in_errors():
                if not self.archive.contains(place):
                    raise wordings.listed_bundle_missing(str(place))
                bundles[name] = bundle = read_estimate(place)
                self._verify(place, bundle.manifest.release_sha256)
                if listed.get(name, bundle.sha256) != bundle.sha256:
                    raise wordings.not_as_listed(str(place))
        return bundles

    def graph(self, estimate: str) -> Any:
        """The graph of one of the `estimates`: a `networkx.Graph`."""
        place = self.archive.estimate(self.dataset, self.release, estimate)
        with self.archive.rewrite_paths_in_errors():
            return read_estimate(place).graph()

    def report(self) -> Path | None:
        """The page that shows the most estimates, or None."""
        places: dict[int, Path] = {}
        for name in self.archive.reports(self.dataset, self.release):
            place = self.archive.report(self.dataset, self.release, name)
            with contextlib.suppress(BundleError):  # a damaged report does not hide the others
                facts = read_report(place).manifest
                self._verify(place, facts.release_sha256)
                places[len(facts.estimates)] = place
        return places[max(places)] / PAGE if places else None

    def withdrawn(self) -> str | None:
        """The reason of the withdrawal; None if the release was not withdrawn.

        Raises
        ------
        BundleError
            If the notice is missing, differs from what was sealed, or is of another release.
        """
        place = self.archive.withdrawal(self.dataset, self.release)
        if not self.archive.contains(place):
            if self.listed is not None and self.listed.withdrawn is not None:
                raise wordings.listed_bundle_missing(self.archive.display_path(place))
            return None
        with self.archive.rewrite_paths_in_errors():
            facts = read_withdrawal(place).manifest
            self._verify(place, facts.release_sha256)
        return facts.reason

    def _verify(self, place: Path, release_sha256: str) -> None:
        """Refuse a bundle of another release, or one signed by a key that is not trusted."""
        self.archive.verify_signer(place)
        if release_sha256 != self.sha256:
            raise wordings.wrong_release(str(place / DESCRIPTOR), f"{self.dataset}/{self.release}")
