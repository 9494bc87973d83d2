"""One release for analysts, verified before any number of it is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.estimates import EstimateFrames, Estimates
from gramercy.api.frames import Histograms, Quantiles, all_chosen, check_between
from gramercy.api.groups import Groups, groups_of
from gramercy.api.notebook import html_list, shortened
from gramercy.api.steps import StepsRelease
from gramercy.archive.bundles.bundle_kinds import (
    PAGE,
    ReleaseBundle,
    published_columns,
    read_estimate,
    read_release,
    read_report,
    read_withdrawal,
)
from gramercy.archive.bundles.number_files import read_rows
from gramercy.archive.bundles.package import DESCRIPTOR
from gramercy.archive.bundles.steps import check_last, window
from gramercy.archive.listing.contents import Contents
from gramercy.archive.seal.bundle import signer
from gramercy.archive.seal.signing import key_id
from gramercy.archive.store.archive import Archive
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.cells import DayCells
from gramercy.schemas.errors import BundleError, GramercyError
from gramercy.schemas.evidence import Evidence, ReleaseEvidence
from gramercy.schemas.facts import ColumnFacts, CumulativeFacts, EarlierStep, GuaranteeFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.noise import NoiseLaw

_OF_QUANTILES = ("value", "lower", "upper")


class Release(ReleaseAnalyses):
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
        self._archive, self._listed, self._key = archive, listed, (dataset, release)
        self._last: dict[int, StepsRelease] = {}
        self._others: dict[str, Release] = {}  # of its series, by their ids

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
        """The noise law of the matrix; of the family ``none`` if there is no matrix.

        Of a matrix that was drawn in the metric of a pilot, root mean squares; the exact law is in
        ``evidence.terms``.
        """
        facts = self.manifest
        return self._bundle.evidence.law if facts.is_whitened else facts.noise

    @property
    def names(self) -> list[str]:
        """Names of the columns of the matrix, in order."""
        return self.manifest.names

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
    def marginals(self) -> Histograms:
        """The published histogram of every column, one line for each bin.

        Returns
        -------
        Histograms
            A DataFrame; ``.plot(column)`` draws it.
            ``column``, ``lower``, ``upper`` and ``level`` of the bin (none of them for missing
            cells and for cells of no declared level), ``count`` with its noise, and ``share`` of
            the rows, or of persons, with its ``standard_error`` from noise and sampling. The edges
            for a derived column such as ``log1p(income)``, if income is not released, are also in
            the units of income (``in_units_of``): ``back_lower`` and ``back_upper``.

        Raises
        ------
        RequestError
            If the release publishes no histograms.
        """
        from gramercy.estimators.derived_columns import with_units_of_inputs
        from gramercy.estimators.released_table import ReleasedTable

        self._needs_marginals()
        found = ReleasedTable(self._bundle.evidence).frame(self.manifest.columns)
        return Histograms(with_units_of_inputs(found, self.manifest.columns, ("lower", "upper")))

    def quantiles(
        self,
        q: float | Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
        level: float = 0.95,
        columns: str | Sequence[str] | None = None,
    ) -> Quantiles:
        """Quantiles of numeric columns, of the cells that are present.

        Parameters
        ----------
        q
            Probabilities, between 0 and 1; 0.5 is the median.
        level
            Confidence level of each interval, greater than 0.5 and less than 1.
        columns
            Names of columns; all numeric ones by default.

        Returns
        -------
        Quantiles
            A DataFrame; ``.plot(column)`` draws it.
            ``column``, ``probability``, ``value``, ``lower`` and ``upper``. See
            `estimators.marginals` for what the intervals cover. Those of a derived column such as
            ``log1p(income)``, if income is not released, also in the units of income
            (``in_units_of``): ``back_value``, ``back_lower`` and ``back_upper``. Numbers that stand
            for dates are shown as dates, and stay numbers.

        Raises
        ------
        RequestError
            If the release publishes no histograms, a number is out of range, or a column is not
            numeric.
        """
        from gramercy.estimators.derived_columns import with_units_of_inputs
        from gramercy.estimators.released_table import ReleasedTable

        self._needs_marginals()
        probabilities = np.zeros(1)
        with contextlib.suppress(TypeError, ValueError):  # a name of a column, for example
            probabilities = np.atleast_1d(np.asarray(q, dtype=np.float64))
        if probabilities.ndim > 1 or not ((probabilities > 0) & (probabilities < 1)).all():
            raise families.ANALYSIS(
                "'q' must be numbers between 0 and 1.",
                "0.5 is the median. Columns are named by .quantiles(columns=COLUMNS).",
            )
        check_between("level", level, 0.5, 1, usual=0.95)
        facts = [each for each in self.manifest.columns if isinstance(each, ColumnFacts)]
        names = [each.name for each in facts]
        wanted = all_chosen(columns, names)
        found = ReleasedTable(self._bundle.evidence).quantiles(probabilities.tolist(), level)
        found = found[found["column"].isin(wanted)].reset_index(drop=True)
        found = with_units_of_inputs(found, self.manifest.columns, _OF_QUANTILES)
        return _shown_as_dates(found, {each.name: each.dates for each in facts if each.dates})

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
                "'{release}' has no rows.", "Its matrix is .second_moment.", release=self.id
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
        frames, bundles = {}, {}
        listed = self._listed.estimates if self._listed else {}
        for name in sorted({*self._archive.estimates(*self._key), *listed}):
            place = self._archive.estimate(*self._key, name)
            with self._archive.rewrite_paths_in_errors():
                if not self._archive.contains(place):
                    raise wordings.listed_bundle_missing(str(place))
                bundles[name] = bundle = read_estimate(place)
                self._verify(place, bundle.manifest.release_sha256)
                if listed.get(name, bundle.sha256) != bundle.sha256:
                    raise wordings.not_as_listed(str(place))
        for name, bundle in bundles.items():
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
                    "'{release}' has no graph.", "Estimate one with .estimate().", release=self.id
                )
            raise families.ESTIMATE(
                "'{release}' has no graph '{estimate}'.",
                "Estimates with a graph: {known}.",
                release=self.id,
                estimate=estimate,
                known=most_similar_first(estimate, graphs),
            )
        with self._archive.rewrite_paths_in_errors():
            return read_estimate(self._archive.estimate(*self._key, estimate)).graph()

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

    @property
    def _all_evidence(self) -> Evidence:
        return self._bundle.evidence

    @property
    def _manifests(self) -> tuple[ReleaseManifest, ...]:
        return (self.manifest,)

    @cached_property
    def groups(self) -> Groups:
        """The groups of rows by name, each with the matrices and the analyses of a release.

        Empty if the request has no key ``by``. The matrix of the release is of all rows.
        """
        return groups_of(self.id, self._bundle)

    @property
    def cumulative(self) -> CumulativeFacts | None:
        """The step of a cumulative series that the release publishes; None without a series.

        The release has the sum over the rows of all steps so far. See `step` and `last`.
        """
        return self.manifest.cumulative

    @property
    def step(self) -> StepsRelease:
        """The rows of this step of a cumulative series alone; see `last`."""
        return self.last(1)

    def last(self, steps: int) -> StepsRelease:
        """The rows of the last steps of a cumulative series, such as thirteen weeks.

        Post-processing of this release and of one before it, which is read from the same archive.
        Every number has the exact noise of these steps. Two windows of one series without a common
        step can be compared: ``later.last(13).compare(earlier.last(13))``.

        Parameters
        ----------
        steps
            Their number, up to that of all steps so far.

        Raises
        ------
        RequestError
            If the release is not of a series, or has fewer steps so far.
        UnknownRelease, BundleError
            If the earlier release is not in the archive, or is not the one that this release names.
        """
        if steps not in self._last:
            facts = check_last(self.id, self.cumulative, steps)
            bundle = self._window(facts.step - steps, facts.step)
            labels = [*self.manifest.releases_of_steps][-steps:]
            self._last[steps] = StepsRelease(self.id, bundle, labels, self.withdrawn)
        return self._last[steps]

    def _window(self, first: int, last: int) -> ReleaseBundle:
        """The steps of its series after `first` up to `last`, as this release decodes them."""
        from gramercy.estimators.noise.denoise import denoise

        def read(named: EarlierStep) -> ReleaseBundle:
            return self._earlier(named)._bundle

        return window(self._bundle, first, last, read, denoise)

    def _earlier(self, named: EarlierStep) -> Release:
        """The release of an earlier step, read once."""
        if named.release not in self._others:
            dataset = self.manifest.dataset.id
            self._others[named.release] = Release(self._archive, dataset, named.release)
        return self._others[named.release]

    @property
    def report(self) -> Path | None:
        """The HTML report with the most estimates, or None.

        For an archive at a URL, the path is that of a local copy. It stays the same, and the file
        stays there, until the process ends; ``shown(release.report)`` is the lasting URL.
        """
        places: dict[int, Path] = {}
        for name in self._archive.reports(*self._key):
            place = self._archive.report(*self._key, name)
            with contextlib.suppress(BundleError):  # a damaged report does not hide the others
                facts = read_report(place).manifest
                self._verify(place, facts.release_sha256)
                places[len(facts.estimates)] = place
        return places[max(places)] / PAGE if places else None

    @cached_property
    def withdrawn(self) -> str | None:
        """The reason of the withdrawal; None if the release was not withdrawn.

        Raises
        ------
        BundleError
            If the notice is missing, differs from what was sealed, or is of another release.
        """
        place = self._archive.withdrawal(*self._key)
        if not self._archive.contains(place):
            if self._listed is not None and self._listed.withdrawn is not None:
                raise wordings.listed_bundle_missing(self._archive.display_path(place))
            return None
        with self._archive.rewrite_paths_in_errors():
            facts = read_withdrawal(place).manifest
            self._verify(place, facts.release_sha256)
        return facts.reason

    @property
    def where(self) -> str:
        """Its folder or URL, without credentials."""
        return self.shown(self.path)

    def shown(self, path: Path) -> str:
        """The path or URL, without credentials, of a file of this release or its bundles."""
        return self._archive.display_path(path)

    def _verify(self, place: Path, release_sha256: str) -> None:
        """Refuse a bundle of another release, or one signed by a key that is not trusted."""
        self._archive.verify_signer(place)
        if release_sha256 != self.sha256:
            raise wordings.wrong_release(str(place / DESCRIPTOR), self.id)

    def _needs_matrix(self) -> None:
        if not self.manifest.publication.has_matrix:
            raise families.ANALYSIS(
                "'{release}' has histograms of its columns, and no matrix.",
                "Use .marginals and .quantiles().",
                release=self.id,
            )

    def _needs_marginals(self) -> None:
        if not self._bundle.marginals:
            raise families.ANALYSIS(
                "'{release}' has no histograms of its columns.",
                "Use a release of private constants ('scaling: private' in its request) or of "
                "marginals.",
                release=self.id,
            )

    def _needs_second_moment(self) -> None:
        self._needs_matrix()
        if not self.manifest.publication.is_moment:
            raise families.ESTIMATE(
                "'{release}' is a precision matrix.", "Use .precision.", release=self.id
            )

    @property
    def _released(self) -> NDArray[np.float64]:
        return self._bundle.raw

    def _labelled(self, matrix: object) -> pd.DataFrame:
        return pd.DataFrame(matrix, index=self.manifest.names, columns=self.manifest.names)

    def _repr_html_(self) -> str:
        facts, guarantee = self.manifest, self.guarantee
        withdrawn = "the notice of withdrawal cannot be read"
        with contextlib.suppress(GramercyError):
            withdrawn = self.withdrawn or ""
        estimates = "they differ from what was sealed"
        with contextlib.suppress(GramercyError):
            estimates = shortened(list(self.estimates))
        shown = {
            "data set": f"{facts.dataset.title} ({facts.dataset.curator})",
            "version": facts.dataset.version,
            "published": facts.published,
            "withdrawn": withdrawn,
            "guarantee": f"epsilon={guarantee.epsilon:g}, delta={guarantee.delta:g}",
            "protects": f"one {facts.privacy_unit}, {facts.neighbours}",
            "mechanism": facts.mechanism["name"],
            facts.count_key: f"{facts.rows.value:,.0f} ({facts.rows.status})",
            "rows are": f"normalised by {facts.normalisation.kind}",
            "columns": shortened([column.name for column in facts.columns]),
            "estimates": estimates,
        }
        listed = {name: value for name, value in shown.items() if value}
        return html_list(f"Release {self.id}", listed)

    def __repr__(self) -> str:
        guarantee, withdrawn = self.guarantee, "; its notice of withdrawal cannot be read"
        with contextlib.suppress(GramercyError):
            withdrawn = f"; withdrawn: {self.withdrawn}" if self.withdrawn else ""
        epsilon, delta = f"epsilon={guarantee.epsilon:g}", f"delta={guarantee.delta:g}"
        return f"<Release {self.id}: {epsilon}, {delta}, mu={guarantee.mu:.4g}{withdrawn}>"


def _shown_as_dates(quantiles: pd.DataFrame, units: Mapping[str, DayCells]) -> Quantiles:
    """The same numbers, shown as dates in the columns that have such units."""
    texts = quantiles.astype(object) if units else quantiles
    for name, unit in units.items():
        lines = quantiles["column"] == name
        for value in _OF_QUANTILES:
            texts.loc[lines, value] = quantiles.loc[lines, value].map(unit.in_words)
    return Quantiles(quantiles, texts)
