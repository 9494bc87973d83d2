"""The last steps of a cumulative release: their rows, with all that a release has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.groups import Groups, groups_of
from gramercy.api.notebook import html_list, shortened
from gramercy.schemas.evidence import Evidence, ReleaseEvidence
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.model import digest
from gramercy.schemas.noise import NoiseLaw

if TYPE_CHECKING:
    from gramercy.archive.bundles.bundle_kinds import ReleaseBundle


class StepsRelease(ReleaseAnalyses):
    """The rows of the last steps of a series, with the matrices and the analyses of a release.

    It is computed from published sums, and costs no privacy. Its noise has the law of the release
    and a known size, which is larger for few steps than for the sum so far divided by as many rows.

    Parameters
    ----------
    release
        DATASET/RELEASE of the last step.
    published
        What is known about the rows of these steps.
    steps
        Versions of the steps.
    withdrawn
        The reason if the release was withdrawn.

    Attributes
    ----------
    steps
        The versions of the steps, such as ``2026-W05``, oldest first.
    withdrawn
        The reason of the withdrawal of the release; None if it was not withdrawn.
    """

    def __init__(
        self, release: str, published: ReleaseBundle, steps: Sequence[str], withdrawn: str | None
    ) -> None:
        super().__init__(f"{release} [last {len(steps)}]")
        self._published, self.steps, self.withdrawn = published, tuple(steps), withdrawn

    @property
    def evidence(self) -> Evidence:
        """The input of estimators."""
        return self._published.evidence

    @property
    def release_evidence(self) -> ReleaseEvidence:
        """The evidence with the name and the facts of the release; see `gramercy.pool`."""
        of_release = self._published.release_evidence
        own = digest([of_release.sha256, len(self.steps)])
        return replace(of_release, name=self.id, sha256=own)

    @property
    def _manifests(self) -> tuple[ReleaseManifest, ...]:
        return (self._published.manifest,)

    @property
    def rows(self) -> float:
        """The number of rows in these steps; noisy if that of the release is."""
        return self._published.manifest.rows.observed

    @property
    def rows_error(self) -> float:
        """Standard deviation of the noise on `rows`; 0 if it is public."""
        return self._published.manifest.rows.sd

    @property
    def noise(self) -> NoiseLaw:
        """The exact law of the noise on the matrix; see `Release.noise`."""
        return self.evidence.law

    @property
    def denoised(self) -> pd.DataFrame:
        """The denoised matrix: positive semidefinite, within the public trace; shape (p, p)."""
        return pd.DataFrame(self._published.repaired, index=self.names, columns=self.names)

    @cached_property
    def groups(self) -> Groups:
        """The groups of rows by name, each with the matrices and the analyses of a release."""
        return groups_of(self.id, self._published)

    def _repr_html_(self) -> str:
        noise = f" (noise: {self.rows_error:.2g})" if self.rows_error else ""
        shown = {"steps": shortened(list(self.steps)), "rows": f"{self.rows:,.0f}{noise}"}
        return html_list(f"Steps {self.id}", shown | {"columns": shortened(self.names)})

    def __repr__(self) -> str:
        first, last = self.steps[0], self.steps[-1]
        shown = first if first == last else f"{first} to {last}"
        return f"<StepsRelease {self.id}: {shown}, {self.rows:.0f} rows>"
