"""One release for analysts, verified before any number of it is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.attachments import Attachments
from gramercy.api.distributions import marginals, quantiles
from gramercy.api.estimates import EstimateFrames, Estimates
from gramercy.api.groups import Groups, groups_of
from gramercy.api.notebook import html_list, release_facts
from gramercy.api.release_facts import ReleaseFacts
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.release_bundle import published_columns, read_release
from gramercy.archive.bundles.rows_file import read_rows
from gramercy.archive.seal.bundle import signer
from gramercy.archive.seal.contents import Contents
from gramercy.archive.seal.signature import key_id
from gramercy.archive.store.archive import Archive
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.errors import GramercyError
from gramercy.schemas.evidence import Evidence


class Release(ReleaseFacts, ReleaseAnalyses):
    """One release, verified when it is opened.

    Its estimates and reports are verified before they are used. If the catalogue was opened with
    public keys, all of them must be signed by one of these keys.

    Parameters
    ----------
    archive, dataset, release
        The archive, and the name of the release in it.

    Attributes
    ----------
    id
        DATASET/RELEASE.
    path
        Its folder. For an archive at a URL, that of a local copy, which is removed when the process
        ends; ``where`` is the URL.
    signed_by
        Id of the key that signed it: see ``gramercy keys``.

    Raises
    ------
    BundleError
        Naming the file that differs from what was sealed.
    """

    def __init__(self, archive: Archive, dataset: str, release: str) -> None:
        name = f"{dataset}/{release}"
        contents = Contents(archive)
        listed = contents.entry(dataset, release)
        self.path = archive.release(dataset, release)
        if not archive.contains(self.path):
            if listed is not None:
                raise wordings.listed_bundle_missing(archive.display_path(self.path))
            names = ["/".join(each) for each in contents.names()]
            raise wordings.unknown_release(archive.location, name, most_similar_first(name, names))
        with archive.rewrite_paths_in_errors():
            super().__init__(name)
            self._bundle = read_release(self.path)
            archive.verify_signer(self.path)
            self.signed_by = key_id(signer(self.path))
            # The seal of a bundle is also valid in the place of another bundle.
            if (self.manifest.dataset.id, self.manifest.release) != (dataset, release):
                raise wordings.wrong_release(str(self.path / DESCRIPTOR), self.id)
            if listed is not None and listed.sha256 != self._bundle.sha256:
                raise wordings.not_as_listed(str(self.path))
        self._attached = Attachments(archive, dataset, release, self._bundle.sha256, listed)

    @property
    def precision(self) -> pd.DataFrame:
        """The precision matrix as released, noise included; shape (p, p).

        Raises
        ------
        RequestError
            If the release is a second moment.
        """
        self._needs_matrix()
        if self.manifest.publication.is_moment:
            published = [name for name, each in self.estimates.items() if "precision" in each]
            known = most_similar_first("graphical-lasso", published)
            raise families.ESTIMATE(
                "'{release}' is a second moment.",
                "Estimate its inverse: .estimate('graphical-lasso').to_frame('precision'). "
                "Published precision matrices are .estimates[NAME]['precision']; names: "
                "{published}.",
                release=self.id,
                published=known,
            )
        return self._labelled(self._bundle.raw)

    @property
    def projected(self) -> pd.DataFrame:
        """The nearest positive semidefinite matrix within the public trace; shape (p, p).

        Raises
        ------
        RequestError
            If the release has no matrix.
        """
        self._needs_matrix()
        return self._labelled(self._bundle.projected)

    @property
    def denoised(self) -> pd.DataFrame:
        """The denoised matrix: positive semidefinite, within the public trace; shape (p, p).

        Raises
        ------
        RequestError
            If the release has no matrix, or shrinkage is not defined for its noise law.
        """
        self._needs_matrix()
        if self._bundle.denoised is None:
            raise families.ESTIMATE(
                "'{release}' has no denoised matrix: its noise is of the family {family}.",
                "Use .projected.",
                release=self.id,
                family=self.noise.family,
            )
        return self._labelled(self._bundle.denoised)

    @property
    def marginals(self) -> pd.DataFrame:
        """The published histogram of every column, one line for each bin.

        Returns
        -------
        DataFrame
            ``column``, ``lower``, ``upper`` and ``level`` of the bin (none of them for missing
            cells and for cells of no declared level), ``count`` with its noise, and ``share`` of
            the rows, or of persons, with its ``standard_error`` from noise and sampling.

        Raises
        ------
        RequestError
            If the release publishes no histograms.
        """
        return marginals(self.id, self._bundle)

    def quantiles(
        self, at: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95), level: float = 0.95
    ) -> pd.DataFrame:
        """Quantiles of every numeric column, of the cells that are present.

        Parameters
        ----------
        at
            Probabilities, between 0 and 1.
        level
            Confidence level of each interval, greater than 0.5 and less than 1.

        Returns
        -------
        DataFrame
            ``column``, ``probability``, ``value``, ``lower`` and ``upper``. See
            `estimators.marginals` for what the intervals cover.

        Raises
        ------
        RequestError
            If the release publishes no histograms, or a number is out of range.
        """
        return quantiles(self.id, self._bundle, at, level)

    def rows(self) -> Iterator[pd.DataFrame]:
        """The published rows in batches, in the units in which they were published.

        Raises
        ------
        RequestError
            If this release has no rows.
        """
        name = self.manifest.publication.rows_file
        if name is None:
            raise families.ESTIMATE(
                "'{release}' has no rows.",
                "Its matrix is .second_moment.",
                release=self.id,
            )
        columns, rows = published_columns(self.manifest), int(self.manifest.rows.value)
        for batch in read_rows(self.path / name, columns, rows):
            yield pd.DataFrame(batch.T, columns=columns)

    @cached_property
    def estimates(self) -> Estimates:
        """The published estimates by id; each has matrices and tables by name.

        Precision and covariance matrices are those of the normalised rows: of columns divided by
        their public scales, with a row for the intercept if there is one. `covariance` is in the
        columns' own units. ``edges`` are the weights of its graph.
        """
        frames = {}
        for name, bundle in self._attached.estimates().items():
            labelled = {key: self._labelled(matrix) for key, matrix in bundle.matrices.items()}
            if bundle.edges is not None:
                labelled["edges"] = self._labelled(bundle.edges)
            frames[name] = EstimateFrames(name, labelled | dict(bundle.tables))
        return Estimates(self.id, frames)

    def graph(self, estimate: str) -> Any:
        """The graph of one of `estimates`: a `networkx.Graph`, weights on its edges.

        Its method ``plot`` draws it. As in `estimates`, the name of an estimator is enough if it
        has one estimate.

        Raises
        ------
        RequestError
            If the estimate does not exist, or has no graph.
        """
        estimate = self.estimates.full_name(estimate)
        if "edges" not in self.estimates.get(estimate, {}):
            graphs = [name for name, frames in self.estimates.items() if "edges" in frames]
            if not graphs:
                raise families.ESTIMATE(
                    "'{release}' has no graph.",
                    "Estimate one with .estimate().",
                    release=self.id,
                )
            raise families.ESTIMATE(
                "'{release}' has no graph '{estimate}'.",
                "Estimates with a graph: {known}.",
                release=self.id,
                estimate=estimate,
                known=most_similar_first(estimate, graphs),
            )
        return self._attached.graph(estimate)

    @property
    def evidence(self) -> Evidence:
        """The input of estimators.

        Raises
        ------
        RequestError
            If the release has no matrix.
        """
        self._needs_matrix()
        return self._bundle.evidence

    @cached_property
    def groups(self) -> Groups:
        """The groups of rows by name, each with the matrices and the analyses of a release.

        Empty if the request has no key ``by``. The matrix of the release is of all rows.
        """
        return groups_of(self.id, self._bundle)

    @property
    def report(self) -> Path | None:
        """The HTML report with the most estimates, or None.

        For an archive at a URL, the path is that of a local copy. It stays the same, and the file
        stays there, until the process ends; ``shown(release.report)`` is the lasting URL.
        """
        return self._attached.report()

    @cached_property
    def withdrawn(self) -> str | None:
        """The reason of the withdrawal; None if the release was not withdrawn.

        Raises
        ------
        BundleError
            If the notice differs from what was sealed, or belongs to another release.
        """
        return self._attached.withdrawn()

    @property
    def where(self) -> str:
        """Its folder or URL, without credentials."""
        return self.shown(self.path)

    def shown(self, path: Path) -> str:
        """The path or URL, without credentials, of a file of this release or its bundles."""
        return self._attached.archive.display_path(path)

    def _needs_matrix(self) -> None:
        if not self.manifest.publication.has_matrix:
            raise families.ANALYSIS(
                "'{release}' has histograms of its columns, and no matrix.",
                "Use .marginals and .quantiles().",
                release=self.id,
            )

    def _needs_second_moment(self) -> None:
        self._needs_matrix()
        if not self.manifest.publication.is_moment:
            raise families.ESTIMATE(
                "'{release}' is a precision matrix.",
                "Use .precision.",
                release=self.id,
            )

    @property
    def _released(self) -> NDArray[np.float64]:
        return self._bundle.raw

    def _labelled(self, matrix: object) -> pd.DataFrame:
        return pd.DataFrame(matrix, index=self.manifest.names, columns=self.manifest.names)

    def _repr_html_(self) -> str:
        return html_list(f"Release {self.id}", release_facts(self))

    def __repr__(self) -> str:
        guarantee, withdrawn = self.guarantee, ""
        try:
            withdrawn = f"; withdrawn: {self.withdrawn}" if self.withdrawn else ""
        except GramercyError:
            withdrawn = "; its notice of withdrawal cannot be read"
        epsilon, delta = f"epsilon={guarantee.epsilon:g}", f"delta={guarantee.delta:g}"
        return f"<Release {self.id}: {epsilon}, {delta}, mu={guarantee.mu:.4g}{withdrawn}>"
