"""The groups of a release: each like a release, compared with each other, and a classifier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramercy.api.analyses import ReleaseAnalyses, analysis
from gramercy.api.estimates import Named
from gramercy.api.frames import SCALES, Frame, all_chosen, in_range
from gramercy.api.habits import OF_GROUPS, WithHabits
from gramercy.api.notebook import html_list, html_table
from gramercy.api.own_rows import level_texts
from gramercy.common.plotting import forest, with_words
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import wordings
from gramercy.schemas.column import level_names, level_text
from gramercy.schemas.evidence import Evidence
from gramercy.schemas.facts import OTHER, ColumnFacts, LevelsFacts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gramercy.api.comparison import Comparison
    from gramercy.api.graph_difference import GraphDifference
    from gramercy.api.graphs import JointGraphs
    from gramercy.api.matrices import MeasuredColumn
    from gramercy.archive.bundles.bundle_kinds import ReleaseBundle
    from gramercy.estimators import Estimate
    from gramercy.schemas.manifest import ReleaseManifest


class MeansByGroup(Frame):
    """The mean of every column in every group: one line for each group.

    Parameters
    ----------
    means
        The means by group.
    """

    def __init__(self, means: Mapping[str, MeasuredColumn]) -> None:
        super().__init__(pd.DataFrame({name: pd.Series(each) for name, each in means.items()}).T)
        object.__setattr__(self, "_means", dict(means))

    def plot(
        self,
        columns: Sequence[str] | str | None = None,
        ax: Axes | None = None,
        level: float = 0.95,
    ) -> Axes:
        """Draw the means with their intervals, a colour for each group.

        One column is drawn in its own unit, one group a line; several by their positions in the
        ranges of their columns.

        Parameters
        ----------
        columns
            A column, or several; None for all of them.
        ax
            Axes to draw on; None for a new figure.
        level
            Confidence level of the intervals.

        Raises
        ------
        MissingPackages
            If matplotlib is not installed.
        RequestError
            If a column does not exist, the level is out of range, or there are no groups.
        """
        known = list(self.columns)
        if not known:
            raise wordings.groups_missing()
        wanted = all_chosen(columns, known)
        places = [known.index(each) for each in wanted]
        listed = [each.listed(level) for each in self._means.values()]
        parts = [each[["estimate", "lower", "upper"]].to_numpy().T[:, places] for each in listed]
        numbers = np.stack(parts, axis=2)
        hollow = np.stack([each["caveat"].to_numpy()[places] != "" for each in listed], axis=1)
        title = f"Means by group, with {100 * level:g} % intervals"
        if len(places) == 1:
            drawn = forest(numbers[:, 0], list(self.index), ax, hollow[0])
            return with_words(drawn, title, f"mean of {wanted[0]}")
        own = [each.facts_of_columns for each in self._means.values()]
        for k, facts in enumerate(own):
            numbers[..., k] = in_range(numbers[..., k], [facts[at] for at in places], "mean")
        drawn = forest(numbers, wanted, ax, hollow, series=list(map(str, self.index)))
        drawn.xaxis.set_major_formatter("{x:g} %")
        return with_words(drawn, title, f"mean, {SCALES['mean']}")


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

    def __init__(self, release: str, group: str, published: ReleaseBundle) -> None:
        super().__init__(f"{release} [{group}]")
        self.group, self._published = group, published

    @property
    def evidence(self) -> Evidence:
        """The input of estimators."""
        return self._published.evidence

    @property
    def _manifests(self) -> tuple[ReleaseManifest, ...]:
        return (self._published.manifest,)

    @property
    def rows(self) -> float:
        """Noisy number of rows or persons; see `rows_error`."""
        return self._size[0]

    @property
    def rows_error(self) -> float:
        """Standard deviation of the noise on `rows`."""
        return self._size[1]

    @property
    def _size(self) -> tuple[float, float]:
        return self.evidence.size or (self.evidence.rows, self.evidence.rows_sd)

    def _repr_html_(self) -> str:
        rows = f"{self.rows:,.0f} (noise: {self.rows_error:.2g})"
        return html_list(f"Group {self.id}", {"rows": rows, "columns": ", ".join(self.names)})

    def __repr__(self) -> str:
        return f"<GroupRelease {self.id}: {self.rows:.0f} rows>"


def groups_of(owner: str, published: ReleaseBundle) -> Groups:
    """The groups of what is published about some rows."""
    rows = {each.level: published.of_group(k) for k, each in enumerate(published.groups)}
    return Groups(owner, {name: GroupRelease(owner, name, own) for name, own in rows.items()})


class Groups(WithHabits, Named[GroupRelease]):
    """The groups of a release by name; the last one has the rows of no declared level.

    A level that is a number or a truth value is also found by itself: ``groups[1]`` is
    ``groups["1"]``. The last one is ``groups["other"]``.
    """

    habits = OF_GROUPS

    def __getitem__(self, name: str | float) -> GroupRelease:
        return super().__getitem__(self._key(name))

    def __contains__(self, name: object) -> bool:
        return super().__contains__(self._key(name))

    def get(self, name: str | float, default: Any = None) -> Any:
        """The group of this name or level; the default if there is none."""
        return super().get(self._key(name), default)

    def _key(self, name: object) -> str:
        text = level_text(name)
        return OTHER if text == "other" and text not in self.keys() else text

    def __missing__(self, name: str) -> GroupRelease:
        raise wordings.unknown_group(self.owner, name, most_similar_first(name, self))

    @property
    def rows(self) -> pd.DataFrame:
        """The number of rows or persons of every group.

        Returns ``rows`` with its ``standard_error`` by noise, and their ``share``. Numbers are not
        negative, and add up to that of the release if it is public.
        """
        numbers = {name: (group.rows, group.rows_error) for name, group in self.items()}
        table = pd.DataFrame.from_dict(numbers, orient="index", columns=["rows", "standard_error"])
        total = max(float(table["rows"].sum()), 1.0)
        return table.assign(share=table["rows"] / total).rename_axis("group")

    @property
    def means(self) -> MeansByGroup:
        """The mean of every column in every group; see `ReleaseMatrices.means`."""
        return MeansByGroup({name: group.means for name, group in self.items()})

    def compare(self, first: str | float, second: str | float, level: float = 0.95) -> Comparison:
        """Compare the means, standard deviations and correlations of two groups.

        Parameters
        ----------
        first, second
            Names of the groups, or the levels themselves.
        level
            Confidence level of the intervals.

        Raises
        ------
        RequestError
            If a group does not exist, or the level is out of range.
        """
        from gramercy.api.comparison import Comparison

        one, other = self[first], self[second]
        return Comparison(one.group, other.group, (one.evidence, other.evidence), level)

    def changes(self) -> pd.DataFrame:
        """Whether each mean, standard deviation and correlation is the same in all groups.

        Of means this is Welch's analysis of variance, with the noise and what clipping may have
        moved; see `Periods.changes`, which has the same columns. Groups that the noise hides, and
        the rows of no declared level, are left out.

        Raises
        ------
        RequestError
            If there are no groups, or the release has no intercept or has unit rows.
        """
        from gramercy.estimators.table_comparison import over_time

        if not self:
            raise wordings.groups_missing()
        tables = {name: group.evidence for name, group in self.items() if name != OTHER}
        found = over_time(tables).changes.rename(columns={"periods": "groups"})
        return found.sort_values("p_value", kind="stable", ignore_index=True)

    def graph_difference(
        self, first: str | float, second: str | float, rate: float = 0.05
    ) -> GraphDifference:
        """Find where the partial correlations of two groups differ.

        Parameters
        ----------
        first, second
            Names of the groups, or the levels themselves.
        rate
            Upper bound on the expected share of false differences among the found ones.

        Raises
        ------
        RequestError
            If a group does not exist, both are the same, or the rate is out of range.
        """
        from gramercy.api.graph_difference import GraphDifference

        one, other = self[first], self[second]
        return GraphDifference(one.group, other.group, (one.evidence, other.evidence), rate)

    def graphs(self, **settings: Any) -> JointGraphs:
        """A graph for each declared level, which share edges as far as the release shows it.

        Parameters
        ----------
        **settings
            Those of `estimators.joint_graphical_lasso`, such as ``penalty``.

        Raises
        ------
        RequestError
            If there are no groups, fewer than two of them are above the noise, or a setting is
            unknown.
        """
        from gramercy.api.graphs import joint_graphs

        if not self:
            raise wordings.groups_missing()
        groups = {name: group.evidence for name, group in self.items()}
        return joint_graphs(self.owner, groups, settings)

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
        from gramercy.estimators.equal_terms import together

        if not self:
            raise wordings.groups_missing()
        evidence = together({name: group.evidence for name, group in self.items()})
        settings = {"prior": prior, "precision": precision}
        estimate = analysis("quadratic-discriminant", settings, evidence)
        columns = [column for column in evidence.columns if column is not None]
        return QuadraticClassifier(self.owner, estimate, columns)

    def _repr_html_(self) -> str:
        return html_table(self.rows[["rows", "standard_error"]].round(0), f"Groups of {self.owner}")


Array = NDArray[np.float64]


class QuadraticClassifier:
    """Quadratic discriminant analysis: assigns rows to the groups of a release.

    Parameters
    ----------
    release
        DATASET/RELEASE.
    estimate
        Of the estimator ``quadratic-discriminant``: see `estimators.quadratic_discriminant`.
    columns
        The table column of each feature.

    Attributes
    ----------
    classes
        DataFrame, one line for each group: its ``status``, which is ``lost in noise`` for a group
        that cannot be predicted, its ``share`` among the others with the error of the noise, and
        the constant of its score.
    means
        DataFrame of the mean of each feature in each class, with the error of the noise.
    features
        Names of the table columns that `predict` needs.
    """

    def __init__(
        self, release: str, estimate: Estimate, columns: Sequence[ColumnFacts | LevelsFacts]
    ) -> None:
        tables = estimate.tables
        self.release, self._columns = release, tuple(columns)
        self.features = list(dict.fromkeys(column.name for column in columns))
        self.classes = tables["classes"].set_index("class")
        self.means = tables["means"].set_index(["class", "feature"])
        self._constants = self.classes.loc[self.classes["status"] == "used", "constant"]
        self._means = tables["means"].groupby("class", sort=False)["mean"]
        self._precisions = tables["precisions"].groupby("class", sort=False)

    def scores(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The score of every class for every row; shape (n, K).

        The difference of two scores is the logarithm of the ratio of the probabilities of their
        classes, if the rows of each class are Gaussian.

        Parameters
        ----------
        rows
            Has the columns `features`, in the table's units; a column of levels has its levels.

        Returns
        -------
        DataFrame
            NaN for rows with missing numbers.

        Raises
        ------
        RequestError
            If a column is missing.
        """
        if missing := [name for name in self.features if name not in rows]:
            raise wordings.rows_lack_columns(tuple(missing), tuple(self.features))
        x = np.column_stack([_cells(rows, self._columns, k) for k in range(len(self._columns))])
        scores = {}
        for name, constant in self._constants.items():
            from_mean = x - self._means.get_group(name).to_numpy()
            precision = self._precisions.get_group(name).iloc[:, 2:].to_numpy(dtype=np.float64)
            scores[name] = constant - ((from_mean @ precision) * from_mean).sum(axis=1) / 2
        return pd.DataFrame(scores, index=rows.index)

    def predict(self, rows: pd.DataFrame) -> pd.Series:
        """The class of every row, that of the largest score; shape (n,).

        None for rows with missing numbers. See `scores`.
        """
        scores = self.scores(rows)
        values = scores.to_numpy()
        best = scores.columns.to_numpy(dtype=object)[values.argmax(axis=1)]
        known = np.isfinite(values).all(axis=1)
        return pd.Series(np.where(known, best, None), index=rows.index, name="class", dtype=object)

    def summary(self) -> str:
        """The classes, and the means of their features, as text."""
        tables = (self.classes, self._mean_table())
        return "\n\n".join(table.to_string(float_format="{:.4g}".format) for table in tables)

    def _mean_table(self) -> pd.DataFrame:
        """Means with a line for each feature and a column for each class."""
        table = self.means["mean"].unstack("class", sort=False)
        return table[list(self._constants.index)]

    def _repr_html_(self) -> str:
        classes = html_table(self.classes, f"{repr(self)[1:-1]}; classes:")
        return classes + html_table(self._mean_table(), "Means")

    def __repr__(self) -> str:
        names = ", ".join(self._constants.index)
        return f"<QuadraticClassifier of {self.release}: {names}>"


def _cells(rows: pd.DataFrame, columns: Sequence[ColumnFacts | LevelsFacts], k: int) -> Array:
    """Feature k of every row: a number, or whether the row has this level; shape (n,)."""
    column = columns[k]
    cells = rows[column.name]
    if isinstance(column, LevelsFacts):
        level = level_names(column.levels)[k - columns.index(column)]
        cells = (level_texts(cells) == level).fillna(False)
    numbers: Array = cells.to_numpy(dtype=np.float64, na_value=np.nan)
    return numbers
