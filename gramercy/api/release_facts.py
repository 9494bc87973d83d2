"""The public facts of a release, as its manifest states them."""

from __future__ import annotations

from gramercy.archive.bundles.release_bundle import ReleaseBundle
from gramercy.schemas.evidence import ReleaseEvidence
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.noise import NoiseLaw


class ReleaseFacts:
    """What is known of a release before its numbers are read."""

    _bundle: ReleaseBundle

    @property
    def manifest(self) -> ReleaseManifest:
        """All public facts of the release."""
        return self._bundle.manifest

    @property
    def period(self) -> str | None:
        """The period of the data, such as ``2026-11``; None if the data set has no periods."""
        return None if self.manifest.period is None else self.manifest.period.label

    @property
    def sha256(self) -> str:
        """Digest of its SHA256SUMS, which names its exact content."""
        return self._bundle.sha256

    @property
    def release_evidence(self) -> ReleaseEvidence:
        """The evidence with the name and the facts of the release; releases are pooled by it."""
        return self._bundle.release_evidence

    @property
    def kind(self) -> str:
        """``second-moment``, ``rows``, ``reports``, ``precision``, or ``marginals``.

        Releases of every kind but ``marginals`` have a matrix.
        """
        return self.manifest.kind

    @property
    def guarantee(self) -> GuaranteeFacts:
        """The exact privacy guarantee of the release."""
        return self.manifest.guarantee

    @property
    def noise(self) -> NoiseLaw:
        """The noise law of the matrix; of the family ``none`` if there is no matrix."""
        return self.manifest.noise

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix, in order."""
        return self.manifest.names
