"""What analysts see: a catalogue of releases, each verified before a number of it is used."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path

import pandas as pd

from archive.estimate import read_estimate
from archive.release import (
    PAGE,
    ReleaseBundle,
    published_columns,
    read_release,
    read_report,
    rows_file,
)
from archive.rows import read_rows
from archive.store import Archive
from schemas.errors import BundleError, RequestError, UnknownRelease
from schemas.evidence import Evidence
from schemas.manifest import GuaranteeFacts, ReleaseManifest
from schemas.noise import NoiseLaw


class Release:
    """One published second moment, verified when it was loaded.

    Parameters
    ----------
    archive, dataset, release
        Where it lies.

    Raises
    ------
    BundleError
        Naming the file that is not what was sealed.
    """

    def __init__(self, archive: Archive, dataset: str, release: str) -> None:
        self.id = f"{dataset}/{release}"
        self.path = archive.release(dataset, release)
        self._archive, self._dataset, self._release = archive, dataset, release
        if (dataset, release) not in archive.releases():
            raise UnknownRelease(
                f"{archive.root}: holds no release '{self.id}'.", "See 'gramercy list'."
            )
        self._bundle: ReleaseBundle = read_release(self.path)

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
    def second_moment(self) -> pd.DataFrame:
        """The second moment as released, noise included; shape (p, p), may be indefinite.

        Raises
        ------
        RequestError
            If the release is a precision matrix.
        """
        if self.manifest.kind == "precision":
            raise RequestError(f"'{self.id}' is a precision matrix.", "Use .precision.")
        return self._labelled(self._bundle.raw)

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
        for name in self._archive.estimates(self._dataset, self._release):
            held = read_estimate(self._archive.estimate(self._dataset, self._release, name))
            frames = {key: self._labelled(matrix) for key, matrix in held.matrices.items()}
            if held.edges is not None:
                frames["edges"] = self._labelled(held.edges)
            found[name] = frames | dict(held.tables)
        return found

    @property
    def evidence(self) -> Evidence:
        """All that an estimator may look at."""
        return self._bundle.evidence

    @property
    def report(self) -> Path | None:
        """The page for people: the one that shows the most estimates. None before it is made."""
        ids = self._archive.reports(self._dataset, self._release)
        places = [self._archive.report(self._dataset, self._release, name) for name in ids]
        found: dict[int, Path] = {}
        for place in places:
            with contextlib.suppress(BundleError):  # a damaged one hides no other
                found[len(read_report(place).manifest.estimates)] = place
        return found[max(found)] / PAGE if found else None

    def _labelled(self, matrix: object) -> pd.DataFrame:
        return pd.DataFrame(matrix, index=self.manifest.names, columns=self.manifest.names)

    def __repr__(self) -> str:
        g = self.guarantee
        return f"<Release {self.id}: epsilon {g.epsilon:g} at delta {g.delta:g}, mu {g.mu:.4g}>"


class Catalogue(Mapping[str, Release]):
    """The releases of an archive.

    Parameters
    ----------
    path
        The archive's folder.

    Examples
    --------
    >>> import gramercy
    >>> catalogue = gramercy.open("path/to/archive")  # doctest: +SKIP
    >>> catalogue["breast-cancer/1995-r1"].denoised  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        self._archive = Archive(Path(path).expanduser())
        if not self._archive.root.is_dir():
            raise RequestError(f"{path}: is not an archive.", "Give the path of its folder.")

    def __iter__(self) -> Iterator[str]:
        return (f"{dataset}/{release}" for dataset, release in self._archive.releases())

    def __len__(self) -> int:
        return len(self._archive.releases())

    def __repr__(self) -> str:
        return f"<Catalogue {self._archive.root}: {', '.join(self) or 'no release'}>"

    def __getitem__(self, name: str) -> Release:
        dataset, _, release = str(name).partition("/")
        return Release(self._archive, dataset, release)
