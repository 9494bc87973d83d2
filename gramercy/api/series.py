"""A cumulative series: the releases of its steps, their numbers so far, and those of each step."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from gramercy.api.frames import NumbersOverTime, check_between
from gramercy.api.notebook import html_table
from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import describe_release
from gramercy.archive.listing.contents import ListedRelease, newest_step
from gramercy.archive.store.archive import Archive
from gramercy.common.similar_names import most_similar_first
from gramercy.schemas import families, wordings
from gramercy.schemas.manifest import ReleaseManifest

if TYPE_CHECKING:
    from gramercy.estimators.table_comparison import OverTime
    from gramercy.schemas.evidence import Evidence


class Series(Mapping[str, Release]):
    """The releases of a cumulative series by the versions of its steps, in their order.

    Each has the sum over all rows so far. `Release.step` and `Release.last` have the rows of the
    last steps alone.

    Parameters
    ----------
    archive
        The archive.
    releases
        Releases of the data set, oldest first.
    window
        The period of the budget, such as ``2026``; None for that of the newest step.

    Raises
    ------
    RequestError
        If no release is a step of a series.

    Examples
    --------
    >>> import gramercy
    >>> series = gramercy.open(archive).series("visits")    # doctest: +SKIP
    >>> series["2026-W26"].means.standard_error             # doctest: +SKIP
    >>> series.so_far()                                     # doctest: +SKIP
    >>> series.each()                                       # doctest: +SKIP
    >>> series.changes(13).query("adjusted < 0.05")         # doctest: +SKIP
    """

    def __init__(
        self, archive: Archive, releases: Sequence[ListedRelease], window: str | None = None
    ) -> None:
        self._archive = archive
        self._facts = _newest_step(archive, releases, window)
        self._names = self._facts.releases_of_steps
        self._listed = {each.facts.release: each for each in releases}
        self._opened: dict[str, Release] = {}

    @property
    def missing(self) -> tuple[str, ...]:
        """Versions of the steps that should be published by today, and are not."""
        return self._facts.overdue_steps(datetime.datetime.now(datetime.UTC))

    @property
    def table(self) -> pd.DataFrame:
        """One line for each step that is published, or should be by today.

        Returns
        -------
        DataFrame
            ``first_day`` and ``last_day`` of its rows; ``release`` and ``published``, which are
            missing for a step that is not published; ``rows`` of all steps so far, with the
            standard deviation ``rows_sd`` if they are noisy; and the reason if it is ``withdrawn``.
        """
        starts, lines = self._facts.step_days.starts, dict[str, dict[str, object]]()
        for k, label in enumerate([*self, *self.missing]):
            line: dict[str, object] = {
                "first_day": starts[k],
                "last_day": starts[k + 1] - datetime.timedelta(days=1),
                "release": self._release_name(label) if label in self._names else None,
            }
            listed = self._listed.get(self._names.get(label, ""))
            if listed is not None:
                rows = listed.facts.rows
                line |= {"published": listed.facts.published, "withdrawn": listed.withdrawn}
                line |= {"rows": rows.observed, "rows_sd": rows.sd}
            lines[label] = line
        columns = ["first_day", "last_day", "release", "published", "rows", "rows_sd", "withdrawn"]
        table = pd.DataFrame.from_dict(lines, orient="index", columns=columns)
        return table.rename_axis("step")

    def so_far(self, level: float = 0.95) -> NumbersOverTime:
        """Means, standard deviations and correlations of all rows up to each step.

        The sums have rows in common, so their errors are not independent: `each` and `changes` show
        what changed. Where a step was drawn again, they are decoded from the last draw.

        Parameters
        ----------
        level
            Confidence level of each interval, greater than 0.5 and less than 1.

        Returns
        -------
        NumbersOverTime
            ``step``, and the other columns of `Periods.over_time`.

        Raises
        ------
        RequestError
            If the releases have no intercept or are of unit rows, or `level` is out of range.
        UnknownRelease, BundleError
            If a release is not in the archive, or differs from what was sealed.
        """
        from gramercy.estimators.table_comparison import numbers_over_time

        numbers = range(1, len(self) + 1)
        found = numbers_over_time(self._evidences([(0, last) for last in numbers], level), level)
        return NumbersOverTime(found.rename(columns={"period": "step"}))

    def each(self, steps: int = 1, level: float = 0.95) -> NumbersOverTime:
        """The same numbers of the rows of every step alone, or of windows of several steps.

        Parameters
        ----------
        steps
            The number of steps of a window: windows follow each other from the first step on, and
            are named by their last step. The last steps are left out if they do not fill one.
        level
            Confidence level of each interval, greater than 0.5 and less than 1.

        Returns
        -------
        NumbersOverTime
            ``step``, and the other columns of `Periods.over_time`.

        Raises
        ------
        RequestError
            As `so_far`, or if there are not as many steps.
        """
        return NumbersOverTime(
            self._windows(steps, level).series.rename(columns={"period": "step"})
        )

    def changes(self, steps: int = 1) -> pd.DataFrame:
        """Whether each number is the same in all windows of `each`, with their joint noise.

        Parameters
        ----------
        steps
            The number of steps of a window.

        Returns
        -------
        DataFrame
            As `Periods.changes`; ``periods`` is the number of windows.
        """
        found = self._windows(steps, 0.95).changes
        return found.sort_values("p_value", kind="stable", ignore_index=True)

    def _windows(self, steps: int, level: float) -> OverTime:
        from gramercy.estimators.table_comparison import over_time

        if not 1 <= steps <= len(self):
            raise families.PERIOD(
                "'{series}' has {published} steps, so 'steps' must be from 1 to {published}.",
                series=self._facts.dataset.id,
                published=len(self),
            )
        ends = range(steps, len(self) + 1, steps)
        evidences = self._evidences([(last - steps, last) for last in ends], level)
        return over_time(evidences, level)

    def _evidences(self, windows: Sequence[tuple[int, int]], level: float) -> dict[str, Evidence]:
        """What is known of windows of steps, by their last steps; as the newest decodes them."""
        from gramercy.estimators.table_comparison import is_in_own_units

        check_between("level", level, 0.5, 1, usual=0.95)
        labels = [*self]
        newest = self[labels[-1]]
        found = {labels[b - 1]: newest._window(a, b).evidence for a, b in windows}
        if not all(map(is_in_own_units, found.values())):
            raise wordings.no_own_units(newest.id)
        return found

    def _release_name(self, label: str) -> str:
        return f"{self._facts.dataset.id}/{self._names[label]}"

    def __getitem__(self, label: str) -> Release:
        if label not in self._names:
            raise families.UNKNOWN_NAME(
                "'{dataset}' has no release of the step '{step}'.",
                "Steps with a release, most similar first: {known}.",
                dataset=self._facts.dataset.id,
                step=str(label),
                known=most_similar_first(str(label), self),
            )
        name = self._names[label]
        if name not in self._opened:
            self._opened[name] = Release(self._archive, self._facts.dataset.id, name)
            self._opened[name]._others = self._opened  # windows read no release twice
        return self._opened[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        missing = f"; missing: {', '.join(self.missing)}" if self.missing else ""
        labels = [*self]
        return f"<Series of {self._facts.dataset.id}: steps {labels[0]} to {labels[-1]}{missing}>"

    def _repr_html_(self) -> str:
        return html_table(self.table, f"Series of {self._facts.dataset.id}")


def _newest_step(
    archive: Archive, releases: Sequence[ListedRelease], window: str | None
) -> ReleaseManifest:
    """The facts of the last step of the newest series; see `newest_step`."""
    newest = newest_step(each for each in releases if window in (None, each.facts.period))
    if newest is not None:
        return describe_release(archive, *newest.key).manifest
    dataset = releases[0].facts.dataset.id
    raise families.PERIOD(
        "'{dataset}' has no release of a cumulative series{of_window}.",
        "Use .history() for its releases; requests with the key 'cumulative' publish a series.",
        dataset=dataset,
        of_window="" if window is None else f" in '{window}'",
    )
