"""What analysts see of one release, verified before a number of it is used."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from gramercy.api.attachments import Attachments
from gramercy.api.measured import Measured, measured
from gramercy.archive.bundle import signer
from gramercy.archive.package import DESCRIPTOR
from gramercy.archive.protocol import Archive
from gramercy.archive.release_bundle import published_columns, read_release, rows_file
from gramercy.archive.rows_file import read_rows
from gramercy.archive.signature import key_id
from gramercy.schemas.errors import BundleError, GramercyError, RequestError, UnknownRelease
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import GuaranteeFacts
from gramercy.schemas.manifest import ReleaseManifest
from gramercy.schemas.noise import NoiseLaw

if TYPE_CHECKING:
    from gramercy.estimators.scikit import DiscriminantClassifier, MatrixEstimator
    from gramercy.estimators.uncertainty.entries import Entries, EntriesOf


class Release:
    """One published second moment, verified when it was loaded.

    Its estimates and reports are verified before any of them is used. Where the archive names
    public keys to trust, all of them must be signed by one of those.

    Parameters
    ----------
    archive, dataset, release
        Where it lies.

    Attributes
    ----------
    id
        DATASET/RELEASE.
    path
        Its folder; of an archive at a URL, the copy on this machine.
    signed_by
        Id of the key that signed it: see ``gramercy keys``.

    Raises
    ------
    BundleError
        Naming the file that is not what was sealed.
    """

    def __init__(self, archive: Archive, dataset: str, release: str) -> None:
        self.id = f"{dataset}/{release}"
        self.path = archive.release(dataset, release)
        self._entries: dict[str, Entries] = {}
        if (dataset, release) not in archive.releases():
            raise UnknownRelease(
                f"{archive.where}: holds no release '{self.id}'.", "See 'gramercy list'."
            )
        with archive.naming():
            self._bundle = read_release(self.path)
            archive.hold_to_key(self.path)
            self.signed_by = key_id(signer(self.path))
            # A genuine bundle in another one's place is signed, too.
            if (self.manifest.dataset.id, self.manifest.release) != (dataset, release):
                raise BundleError(
                    f"{self.path / DESCRIPTOR}: describes another release than its folder's."
                )
        self._attached = Attachments(archive, dataset, release, self._bundle.sha256)

    @property
    def manifest(self) -> ReleaseManifest:
        """Every public fact of the release."""
        return self._bundle.manifest

    @property
    def guarantee(self) -> GuaranteeFacts:
        """What the release guarantees, exactly."""
        return self.manifest.guarantee

    @property
    def noise(self) -> NoiseLaw:
        """Noise law of `second_moment`."""
        return self.manifest.noise

    @property
    def second_moment(self) -> Measured:
        """The second moment as released, noise included; shape (p, p), may be indefinite.

        Its intervals are of the second moment about zero that the rows' population has; where the
        noise has a mean (``noise.mean``, on the diagonal), they are about the matrix less that.

        Raises
        ------
        RequestError
            If the release is a precision matrix.
        """
        self._needs_second_moment()
        return Measured(self._bundle.raw, self.manifest.names, lambda: self._known("second moment"))

    @property
    def covariance(self) -> Measured:
        """Second moments about the means, without bias, of all columns but that of ones.

        Where the release has no column of ones (``intercept: true`` in the contract), they are
        about the public centres. In the units of the matrix; may be indefinite. Raises as
        `second_moment` does.
        """
        return self._measured("covariance")

    @property
    def correlation(self) -> Measured:
        """Correlations, about the means as `covariance`; NaN where the noise leaves nothing.

        Raises as `second_moment` does.
        """
        return self._measured("correlation")

    @property
    def partial_correlation(self) -> Measured:
        """Correlations of two columns given all others, about the means as `covariance`.

        From the inverse, less its bias by the noise; all of it NaN where the noise may have made
        the smallest eigenvalues. Then a penalised estimate is the one to have: see `estimate`.
        Raises as `second_moment` does.
        """
        return self._measured("partial-correlation")

    @property
    def precision(self) -> pd.DataFrame:
        """The precision matrix as released, noise included; shape (p, p).

        Raises
        ------
        RequestError
            If the release is a second moment.
        """
        if self.manifest.kind != "precision":
            raise RequestError(f"'{self.id}' is a second moment.", "Use .estimates.")
        return self._labelled(self._bundle.raw)

    @property
    def projected(self) -> pd.DataFrame:
        """The nearest positive semidefinite matrix within the public trace; shape (p, p)."""
        return self._labelled(self._bundle.projected)

    @property
    def denoised(self) -> pd.DataFrame:
        """The matrix denoised: positive semidefinite, within the public trace; shape (p, p).

        Raises
        ------
        RequestError
            If there is no noise law to shrink by.
        """
        if self._bundle.denoised is None:
            raise RequestError(
                f"'{self.id}' has noise of the family {self.noise.family}, which is not denoised.",
                "Use .projected.",
            )
        return self._labelled(self._bundle.denoised)

    def rows(self) -> Iterator[pd.DataFrame]:
        """The published rows in batches, where rows were published; in the units of the rows.

        Raises
        ------
        RequestError
            If this release holds a matrix alone.
        """
        name = rows_file(self.manifest)
        if name is None:
            raise RequestError(f"'{self.id}' holds no rows.", "It holds a matrix alone.")
        columns, rows = published_columns(self.manifest), int(self.manifest.rows.value)
        for batch in read_rows(self.path / name, columns, rows):
            yield pd.DataFrame(batch.T, columns=columns)

    @cached_property
    def estimates(self) -> Mapping[str, Mapping[str, pd.DataFrame]]:
        """What was estimated from this release: by the id of the estimate, and by name.

        Matrices first, then tables; ``edges`` are the weights of its graph.
        """
        found = {}
        for name, held in self._attached.estimates().items():
            frames = {key: self._labelled(matrix) for key, matrix in held.matrices.items()}
            if held.edges is not None:
                frames["edges"] = self._labelled(held.edges)
            found[name] = frames | dict(held.tables)
        return found

    def graph(self, estimate: str) -> Any:
        """The graph of one of `estimates`: a `networkx.Graph`, weights on its edges.

        Raises
        ------
        RequestError
            If there is no such estimate, or it has no graph.
        """
        if "edges" not in self.estimates.get(estimate, {}):
            graphs = [name for name, held in self.estimates.items() if "edges" in held]
            raise RequestError(
                f"'{self.id}' has no graph '{estimate}'.",
                f"It has {', '.join(graphs)}." if graphs else "Make one with .estimate.",
            )
        return self._attached.graph(estimate)

    def estimate(self, name: str, **settings: Any) -> MatrixEstimator | DiscriminantClassifier:
        """Estimate from this release, here and now; costs no privacy, and seals nothing.

        Parameters
        ----------
        name
            Of an estimator, such as ``graphical-lasso``: docs/estimators.md lists them.
        **settings
            Its own, such as ``penalty``.

        Returns
        -------
        MatrixEstimator or DiscriminantClassifier
            Fitted, in the style of scikit-learn: see `estimators.scikit`.

        Raises
        ------
        RequestError
            If there is no such estimator or setting, or this release does not allow it.

        Examples
        --------
        >>> import gramercy
        >>> fitted = gramercy.open(archive).latest("toy").estimate("graphical-lasso", penalty=0.1)
        >>> fitted.precision_.shape, list(fitted.to_networkx())
        ((3, 3), ['c0', 'c1', 'c2'])
        """
        from gramercy.api.estimation import estimator  # with scikit-learn

        return estimator(name, settings).fit(self)

    @property
    def evidence(self) -> Evidence:
        """All that an estimator may look at."""
        return self._bundle.evidence

    @property
    def report(self) -> Path | None:
        """The page for people: the one that shows the most estimates. None before it is made."""
        return self._attached.report()

    @cached_property
    def withdrawn(self) -> str | None:
        """Why the curator has withdrawn this release; None where that has not happened.

        Raises
        ------
        BundleError
            If there is a notice, and it is not what was sealed, or not of this release.
        """
        return self._attached.withdrawn()

    @property
    def where(self) -> str:
        """Its folder or URL, for people."""
        return self.shown(self.path)

    def shown(self, path: Path) -> str:
        """The path or URL, for people, of what lies in the release or beside it."""
        return self._attached.archive.shown(path)

    def _needs_second_moment(self) -> None:
        if self.manifest.kind == "precision":
            raise RequestError(f"'{self.id}' is a precision matrix.", "Use .precision.")

    def _known(self, of: EntriesOf) -> Entries:
        """Worked out once; see `estimators.uncertainty.entries`."""
        from gramercy.estimators.uncertainty.entries import entries

        if of not in self._entries:
            self._entries[of] = entries(self.evidence, of)
        return self._entries[of]

    def _measured(self, of: EntriesOf) -> Measured:
        self._needs_second_moment()
        return measured(self._known(of), self.manifest.names)

    def _labelled(self, matrix: object) -> pd.DataFrame:
        return pd.DataFrame(matrix, index=self.manifest.names, columns=self.manifest.names)

    def __repr__(self) -> str:
        g, withdrawn = self.guarantee, ""
        try:
            withdrawn = f"; withdrawn: {self.withdrawn}" if self.withdrawn else ""
        except GramercyError:
            withdrawn = "; its notice of withdrawal cannot be read"
        told = f"epsilon {g.epsilon:g} at delta {g.delta:g}, mu {g.mu:.4g}{withdrawn}"
        return f"<Release {self.id}: {told}>"
