"""What a release publishes: one object for each kind, with its public words and the names of files.

A manifest names its kind. Whatever differs between kinds is asked of the object, so that a new kind
is an object here, in `publications`, and a way to draw and check it in `pipeline.publish.drawing`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Annotated

from pydantic import AfterValidator

from gramercy.schemas import families
from gramercy.schemas.errors import RequestError


def _no_estimates_of_precision(release: str, _id: str) -> RequestError:
    return families.ESTIMATE(
        "'{release}' is already a precision matrix.",
        "Estimate from a release of the second moment.",
        release=release,
    )


def _no_estimates_of_marginals(release: str, id_: str) -> RequestError:
    return families.ESTIMATES(
        "'{release}' has histograms of its columns, and no matrix.",
        "Estimate from a release of the second moment. One that takes its constants from this "
        "release ('scaling: {{from: {id}}}' in its request) pays for the matrix alone.",
        release=release,
        id=id_,
    )


def _products(names: Sequence[str]) -> list[str]:
    return [f"{a} * {b}" for a, b in combinations_with_replacement(names, 2)]


@dataclass(frozen=True, kw_only=True)
class Publication:
    """A kind of publication."""

    name: str  # the `kind` of manifests
    # short, planned: what is published, in a few words: for lists, and for plans
    short: str
    planned: str
    headline: str  # what is published, in a sentence of the page of a plan
    contents: str  # what is published, in a sentence with `{shape}` or `{rows}`, and `{repaired}`
    noise_on: str  # what the noise is added to
    # stem of the names of the files of its matrices; empty if it has no matrix
    stem: str = "second_moment"
    # the columns of its file of rows, from those of the matrix; None if it has no rows
    row_columns: Callable[[Sequence[str]], list[str]] | None = None
    row_contents: str = ""  # what the file of rows contains
    # whether the stated guarantee is an upper bound of that of the noise, instead of equal
    bounds_guarantee: bool = False
    # what it is for, in the words of the DP card
    intended_use: str = "estimation of second moments, precision matrices and graphs"
    # the error for a release, by its name and id, that estimators cannot take; None if they can,
    # because its matrix is a second moment
    refuse_estimates: Callable[[str, str], RequestError] | None = None

    @property
    def has_matrix(self) -> bool:
        """Whether it has a matrix, and not histograms alone."""
        return bool(self.stem)

    @property
    def is_moment(self) -> bool:
        """Whether its matrix is a second moment, from which anything can be estimated."""
        return self.refuse_estimates is None

    @property
    def matrix(self) -> str:
        """What the matrix is called where the sentence before has named it."""
        return "second moment" if self.is_moment else "matrix"

    @property
    def quantity(self) -> str:
        """What the scaled off-diagonal entries of the matrix are."""
        return "correlations" if self.is_moment else "partial correlations"

    @property
    def rows_file(self) -> str | None:
        """The name of the file of published rows or reports."""
        return f"{self.name}.parquet" if self.row_columns else None


SECOND_MOMENT = Publication(
    name="second-moment",
    short="a second moment",
    planned="a noisy second moment",
    headline="The second moment of the normalised rows, with noise on every entry",
    contents="The noisy second moment of the normalised rows ({shape}), {repaired}.",
    noise_on="the second-moment matrix",
)
ROWS = Publication(
    name="rows",
    short="rows",
    planned="noisy rows, and the second moment computed from them",
    headline="Every row with noise on every cell, and the second moment computed from them",
    contents="The normalised rows with noise on every cell ({shape}), and the unbiased second "
    "moment that follows from them, {repaired}.",
    noise_on="every cell of every row",
    row_columns=list,
    row_contents="the rows as released, noise included, in the order of the table",
)
REPORTS = Publication(
    name="reports",
    short="reports",
    planned="one noisy report per row, and their average",
    headline="One noisy report per row, and their average, the second moment",
    contents="One noisy report of every row ({shape}), and their average, {repaired}.",
    noise_on="the second moment of each row",
    row_columns=_products,
    row_contents="one report per row: the upper triangle of its x xᵀ, noise included",
)
PRECISION = Publication(
    name="precision",
    short="a precision matrix",
    planned="a noisy precision matrix",
    headline="A precision matrix, the graphical lasso solution, with noise on every entry",
    contents="A noisy precision matrix ({shape}): the graphical lasso solution for the second "
    "moment of the normalised rows, with noise added to the solution.",
    noise_on="a graphical lasso precision matrix",
    stem="precision",
    bounds_guarantee=True,  # its sensitivity is not known exactly, only bounded
    refuse_estimates=_no_estimates_of_precision,
)
MARGINALS = Publication(
    name="marginals",
    short="histograms",
    planned="noisy histograms of every column",
    headline="Noisy histograms of every column",
    contents="Noisy histograms of every column of the table ({rows}), and of the lengths of its "
    "scaled rows. The constants of the columns were computed from them.",
    noise_on="the counts of histograms",
    stem="",
    bounds_guarantee=True,  # no single change may be the worst one for all histograms at once
    intended_use="distributions of single columns, and constants for later releases",
    refuse_estimates=_no_estimates_of_marginals,
)

publications: dict[str, Publication] = {
    each.name: each for each in (SECOND_MOMENT, ROWS, REPORTS, PRECISION, MARGINALS)
}


def _known(name: str) -> str:
    if name not in publications:
        raise families.VALUE("Must be one of {kinds}.", kinds=tuple(publications))
    return name


ReleaseKind = Annotated[str, AfterValidator(_known)]
