"""Several releases as one, and the periods of a data set: over time, and their pool."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pandas as pd

from gramercy.api.analyses import ReleaseAnalyses
from gramercy.api.frames import NumbersOverTime, check_between
from gramercy.api.notebook import html_table
from gramercy.api.release import Release
from gramercy.api.steps import StepsRelease
from gramercy.archive.listing.contents import ListedRelease, newest_of_periods
from gramercy.archive.store.archive import Archive
from gramercy.common.similar_names import most_similar_first
from gramercy.estimators.pooling.agreement import check_pool
from gramercy.estimators.pooling.pool import pool
from gramercy.schemas import families, wordings
from gramercy.schemas.evidence import Evidence, PooledRows
from gramercy.schemas.noise import NoiseLaw

if TYPE_CHECKING:
    from gramercy.api.graph_difference import GraphDifference
    from gramercy.api.graphs import JointGraphs
    from gramercy.estimators.table_comparison import OverTime
    from gramercy.schemas.manifest import ReleaseManifest


class PooledRelease(ReleaseAnalyses):
    """Several releases as one, with the matrices and the analyses of a release.

    Parameters
    ----------
    releases, rows
        See `gramercy.pool`.

    Attributes
    ----------
    id
        The names of the releases.
    releases
        The releases.
    """

    def __init__(
        self, releases: Sequence[Release | StepsRelease], rows: PooledRows | None = None
    ) -> None:
        # A single release is refused later, as too few.
        self.releases = tuple(releases if isinstance(releases, Iterable) else [releases])
        for each in self.releases:
            if not isinstance(each, Release | StepsRelease):
                raise wordings.not_a_release(type(each).__name__)
        super().__init__(" + ".join(each.id for each in self.releases))
        self._rows = rows
        for release in self.releases:
            if release.withdrawn is not None:
                raise wordings.pool_of_withdrawn(release.id, release.withdrawn)
            release._needs_second_moment()
        check_pool([each.release_evidence for each in self.releases], rows)

    @cached_property
    def evidence(self) -> Evidence:
        """The input of estimators, in the units of a release with a large weight."""
        return pool([each.release_evidence for each in self.releases], self._rows)

    @property
    def _manifests(self) -> tuple[ReleaseManifest, ...]:
        return tuple(facts for each in self.releases for facts in each._manifests)

    @property
    def weights(self) -> pd.Series:
        """The weight of each release; they add up to 1."""
        parts = self.evidence.parts
        names = [part.release for part in parts]
        return pd.Series([part.weight for part in parts], names, name="weight")

    @property
    def noise(self) -> NoiseLaw:
        """The law of the noise, or, if it has `evidence.terms`, its root mean squares."""
        return self.evidence.law

    @property
    def rows(self) -> float:
        """The number of rows that has the sampling error of the pool."""
        return self.evidence.rows

    def _repr_html_(self) -> str:
        weights = pd.DataFrame({"weight": self.weights.round(3)})
        return html_table(weights, f"Pool of {len(self.releases)} releases")

    def __repr__(self) -> str:
        weights = ", ".join(f"{name} ({w:.2g})" for name, w in self.weights.items())
        return f"<PooledRelease of {weights}>"


class Periods(Mapping[str, Release]):
    """The releases of a data set by the periods of its data, in their order.

    Each period has its newest release with a second moment that was not withdrawn, among those with
    the columns that most periods have: one release of a month with other columns, such as one with
    groups, does not keep the periods from being pooled. `table` names the releases.

    Parameters
    ----------
    archive
        The archive.
    dataset
        Id of the data set.
    releases
        Its releases, oldest first.

    Raises
    ------
    RequestError
        If no release is of a period.

    Examples
    --------
    >>> import gramercy
    >>> periods = gramercy.open(archive).periods("visits")  # doctest: +SKIP
    >>> periods["2026-11"].means.standard_error             # doctest: +SKIP
    >>> periods.over_time()                                 # doctest: +SKIP
    >>> periods.changes().query("adjusted < 0.05")          # doctest: +SKIP
    >>> periods.pooled.correlation                          # doctest: +SKIP
    """

    def __init__(self, archive: Archive, dataset: str, releases: Sequence[ListedRelease]) -> None:
        self._archive, self._dataset = archive, dataset
        self._listed = newest_of_periods(releases)
        self._opened: dict[str, Release] = {}
        if not self._listed:
            raise families.PERIOD(
                "'{dataset}' has no release of a period of its data.",
                "Use .history() for its releases, or .series() for the steps of a cumulative "
                "series: its budget is not per period, or none of them has a matrix.",
                dataset=dataset,
            )

    @property
    def table(self) -> pd.DataFrame:
        """One line for each period: ``release``, ``published``, ``rows``, ``epsilon``, ``delta``.

        Under ``add-remove``, ``rows`` is noisy, with the standard deviation ``rows_sd``.
        """
        lines = {
            label: {
                "release": each.name,
                "published": each.facts.published,
                "rows": each.facts.rows.value,
                "rows_sd": each.facts.rows.sd,
                "epsilon": each.facts.guarantee.epsilon,
                "delta": each.facts.guarantee.delta,
            }
            for label, each in self._listed.items()
        }
        return pd.DataFrame.from_dict(lines, orient="index").rename_axis("period")

    def over_time(self, level: float = 0.95) -> NumbersOverTime:
        """Means, standard deviations and correlations of every period, in the columns' own units.

        Parameters
        ----------
        level
            Confidence level of each interval, greater than 0.5 and less than 1.

        Returns
        -------
        NumbersOverTime
            A DataFrame with a plot: ``period``, ``kind`` (``mean``, of a level its share;
            ``standard deviation``;
            ``correlation``), ``column``, ``other``, ``estimate``, ``standard_error``, ``lower`` and
            ``upper``. NaN where noise hides a number.

        Raises
        ------
        RequestError
            If a release has no intercept or is of unit rows, or `level` is out of range.
        """
        return NumbersOverTime(self._numbers(level).series)

    def changes(self) -> pd.DataFrame:
        """Whether each number of `over_time` is the same in all periods.

        The test is about the populations behind the tables. It knows the noise and the sampling
        error of each period, and how far clipping may have moved each number: a difference that
        clipping can explain is not a change (`estimators.table_comparison`).

        Returns
        -------
        DataFrame
            ``kind``, ``column``, ``other``, ``periods`` in which the number is known, the
            ``p_value`` of no change, and ``adjusted`` for testing all numbers at once; sorted by
            the p-value. ``one_population`` is the p-value of another hypothesis, that all tables
            are of one population: releases that clip alike test it by their clipped rows. It may be
            small although the number is the same.
        """
        return self._numbers(0.95).changes.sort_values("p_value", kind="stable", ignore_index=True)

    def graph_difference(self, first: str, second: str, rate: float = 0.05) -> GraphDifference:
        """Find where the partial correlations of two periods differ.

        Parameters
        ----------
        first, second
            Labels of the periods.
        rate
            Upper bound on the expected share of false differences among the found ones.

        Raises
        ------
        RequestError
            If a period has no release, or as by `Release.graph_difference`.
        """
        return self[first].graph_difference(self[second], rate)

    def graphs(self, **settings: Any) -> JointGraphs:
        """A graph for each period; the same edge has similar weights in successive periods.

        Parameters
        ----------
        **settings
            Those of `estimators.joint_graphical_lasso`, such as ``penalty``; `structure` is
            ``fused`` by default.

        Raises
        ------
        RequestError
            If fewer than two periods are above the noise, or a setting is unknown.
        """
        from gramercy.api.graphs import joint_graphs

        tables = {label: each.evidence for label, each in self.items()}
        return joint_graphs(self._dataset, tables, {"structure": "fused", **settings})

    @cached_property
    def pooled(self) -> PooledRelease:
        """All periods as one release: their rows are different. See `gramercy.pool`.

        Raises
        ------
        RequestError
            If there is one period only, or the releases cannot be pooled.
        """
        return PooledRelease([*self.values()], rows="disjoint")

    def _numbers(self, level: float) -> OverTime:
        from gramercy.estimators.table_comparison import is_in_own_units, over_time

        check_between("level", level, 0.5, 1, usual=0.95)
        for release in self.values():
            if not is_in_own_units(release.evidence):
                raise wordings.no_own_units(release.id)
        return over_time({label: each.evidence for label, each in self.items()}, level)

    def __getitem__(self, label: str) -> Release:
        if label not in self._listed:
            known = most_similar_first(str(label), self)
            raise families.UNKNOWN_NAME(
                "'{dataset}' has no release of the period '{period}'.",
                "Periods with a matrix, most similar first: {known}.",
                dataset=self._dataset,
                period=str(label),
                known=known,
            )
        if label not in self._opened:
            name = self._listed[label].facts.release
            self._opened[label] = Release(self._archive, self._dataset, name)
        return self._opened[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._listed)

    def __len__(self) -> int:
        return len(self._listed)

    def __repr__(self) -> str:
        return f"<Periods of {self._dataset}: {', '.join(self)}>"

    def _repr_html_(self) -> str:
        return html_table(self.table, f"Periods of {self._dataset}")
