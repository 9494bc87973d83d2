"""What is sealed beside a release: estimates, reports, and a notice of its withdrawal."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramercy.archive.estimate_bundle import GRAPH, EstimateBundle, read_estimate
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import PAGE, read_report
from gramercy.archive.withdrawal_notice import read_withdrawal
from gramercy.schemas.errors import BundleError


@dataclass(frozen=True)
class Attachments:
    """The bundles beside a release, each verified before anything of it is given back.

    Parameters
    ----------
    archive, dataset, release
        Where the release lies.
    sha256
        The digest of its SHA256SUMS, which each of them names.
    """

    archive: Archive
    dataset: str
    release: str
    sha256: str

    def estimates(self) -> dict[str, EstimateBundle]:
        """All estimates, by id.

        Raises
        ------
        BundleError
            If one is not what was sealed, or not of this release.
        """
        found = {}
        for name in self.archive.estimates(self.dataset, self.release):
            place = self.archive.estimate(self.dataset, self.release, name)
            with self.archive.naming():
                found[name] = read_estimate(place)
                self._hold(place, found[name].manifest.release_sha256)
        return found

    def graph(self, estimate: str) -> Any:
        """The graph of one of the `estimates`: a `networkx.Graph`."""
        import networkx as nx  # takes a third of a second

        place = self.archive.estimate(self.dataset, self.release, estimate)
        return nx.read_graphml(place / GRAPH)

    def report(self) -> Path | None:
        """The page that shows the most estimates; None before there is one."""
        found: dict[int, Path] = {}
        for name in self.archive.reports(self.dataset, self.release):
            place = self.archive.report(self.dataset, self.release, name)
            with contextlib.suppress(BundleError):  # a damaged one hides no other
                facts = read_report(place).manifest
                self._hold(place, facts.release_sha256)
                found[len(facts.estimates)] = place
        return found[max(found)] / PAGE if found else None

    def withdrawn(self) -> str | None:
        """The reason that a notice of withdrawal gives; None where there is none.

        Raises
        ------
        BundleError
            If the notice is not what was sealed, or not of this release.
        """
        place = self.archive.withdrawal(self.dataset, self.release)
        if not self.archive.holds(place):
            return None
        with self.archive.naming():
            facts = read_withdrawal(place).manifest
            self._hold(place, facts.release_sha256)
        return facts.reason

    def _hold(self, place: Path, release_sha256: str) -> None:
        """Refuse what is of another release, or signed by nobody trusted."""
        self.archive.hold_to_key(place)
        if release_sha256 != self.sha256:
            name = f"{self.dataset}/{self.release}"
            raise BundleError(f"{place / DESCRIPTOR}: is of another release than '{name}'.")
