"""The groups of a release: each like a release of its own, and compared with each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Protocol

import pandas as pd

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.estimates import Named
from gramercy.api.notebook import html_list, html_table
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import wordings
from gramercy.schemas.evidence import Evidence

if TYPE_CHECKING:
    from gramercy.api.results.comparison import Comparison
    from gramercy.api.results.quadratic_classifier import QuadraticClassifier
    from gramercy.archive.bundles.release_bundle import ReleaseBundle


class Published(Protocol):
    """What is published about some rows."""

    @property
    def evidence(self) -> Evidence:
        """The input of estimators."""


class GroupRelease(ReleaseAnalyses):
    """The rows of one group, with the matrices and the analyses of a release.

    Parameters
    ----------
    release
        DATASET/RELEASE.
    group
        Name of the group.
    published
        What is published about its rows, with the evidence that is built when it is first needed.

    Attributes
    ----------
    group
        Name of the group.
    """

    def __init__(self, release: str, group: str, published: Published) -> None:
        super().__init__(f"{release} [{group}]")
        self.group, self._published = group, published

    @property
    def evidence(self) -> Evidence:
        """The input of estimators."""
        return self._published.evidence

    @property
    def rows(self) -> float:
        """Noisy number of rows or persons; see `rows_error`."""
        return self.evidence.rows

    @property
    def rows_error(self) -> float:
        """Standard deviation of the noise on `rows`."""
        return self.evidence.rows_sd

    def _repr_html_(self) -> str:
        rows = f"{self.rows:,.0f} (noise: {self.rows_error:.2g})"
        return html_list(f"Group {self.id}", {"rows": rows, "columns": ", ".join(self.names)})

    def __repr__(self) -> str:
        return f"<GroupRelease {self.id}: {self.rows:.0f} rows>"


class Groups(Named[GroupRelease]):
    """The groups of a release by name; the last one has the rows of no declared level."""

    def __missing__(self, name: str) -> GroupRelease:
        raise wordings.unknown_group(self.owner, str(name), most_similar_first(str(name), self))

    @property
    def rows(self) -> pd.DataFrame:
        """The noisy number of rows or persons of every group, and its ``standard_error``."""
        numbers = {name: (group.rows, group.rows_error) for name, group in self.items()}
        return pd.DataFrame.from_dict(
            numbers, orient="index", columns=["rows", "standard_error"]
        ).rename_axis("group")

    @property
    def means(self) -> pd.DataFrame:
        """The mean of every column in every group; see `ReleaseMatrices.means`."""
        return pd.DataFrame({name: pd.Series(group.means) for name, group in self.items()}).T

    def compare(self, first: str, second: str, level: float = 0.95) -> Comparison:
        """Compare the means, standard deviations and correlations of two groups.

        Parameters
        ----------
        first, second
            Names of the groups.
        level
            Confidence level of the intervals.

        Raises
        ------
        RequestError
            If a group does not exist, or the level is out of range.
        """
        from gramercy.api.results.comparison import Comparison

        return Comparison(first, second, (self[first].evidence, self[second].evidence), level)

    def classifier(
        self,
        prior: Literal["shares", "equal"] = "shares",
        precision: Literal["ridge", "graphical-lasso"] = "ridge",
    ) -> QuadraticClassifier:
        """Quadratic discriminant analysis, which assigns rows to the declared levels.

        Parameters
        ----------
        prior
            Prior probability of the groups: their ``shares`` of the rows, or ``equal``.
        precision
            Estimator of the precision matrix of every group.

        Raises
        ------
        RequestError
            If there are no groups, the release has no intercept or has unit rows, or fewer than two
            groups are above the noise.
        """
        from gramercy.api.analysis import analysis
        from gramercy.api.results.quadratic_classifier import QuadraticClassifier

        if not self:
            raise wordings.groups_missing()
        groups = {name: group.evidence for name, group in self.items()}
        evidence = replace(next(iter(groups.values())), groups=tuple(groups.items()))
        settings = {"prior": prior, "precision": precision}
        estimate = analysis("quadratic-discriminant", settings, evidence)
        columns = [column for column in evidence.columns if column is not None]
        return QuadraticClassifier(self.owner, estimate, columns)

    def _repr_html_(self) -> str:
        return html_table(self.rows.round(0), f"Groups of {self.owner}")


def groups_of(release: str, bundle: ReleaseBundle) -> Groups:
    """The groups of a release."""
    rows = {group.level: bundle.of_group(index) for index, group in enumerate(bundle.groups)}
    return Groups(release, {name: GroupRelease(release, name, own) for name, own in rows.items()})
