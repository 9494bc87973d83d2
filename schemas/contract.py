"""The dataset contract: what the steward declares, in public, about a private table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    StringConstraints,
    field_validator,
    model_validator,
)

from gramercy.schemas import families, wordings
from gramercy.schemas.budget import Budget, budget_window
from gramercy.schemas.cells import DayCells
from gramercy.schemas.column import (
    INTERCEPT,
    MAX_COLUMNS,
    AnyColumn,
    ColumnKind,
    Derived,
    dates_in,
    with_derived,
)
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.model import Model, Slug, has_unprintable, in_nfc, single_line
from gramercy.schemas.neighbours import Neighbours, ProtectedUnit
from gramercy.schemas.periods import (
    FILES,
    DatePeriod,
    RowsByPeriod,
    SelectedPeriod,
    check_date_column,
    check_rows_by_period,
    check_source,
    span_of,
    with_period,
)
from gramercy.schemas.source import AnySource, DatedFiles, at_location, location, notation_of
from gramercy.schemas.steps import StepDays

_ROW, _CELL = "row", "cell"

Line = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=200),
    AfterValidator(single_line),
]


class Contract(Model):
    """The public description of a private table.

    Parameters
    ----------
    id
        Short name of the data set: lower-case letters, digits and hyphens.
    title, curator
        Title of the data set, and name of the person or body that is responsible for it.
    source
        Path, glob or URL of the CSV or Parquet files, or of a folder of them. Subfolders may be
        named ``column=value``. Relative paths are relative to the folder of the contract. Or keys
        of `Files` (``path`` and how CSV is written) or of `DatabaseTable`. With a budget
        per period it must contain placeholders for the period, unless `period` is given:
        ``{year}``, and ``{quarter}``, ``{month}`` or ``{week}``, or ``{month}`` and ``{day}``. They
        stand for digits, and the files of each period must be separate. Files may be of a shorter
        period, such as months of a year, or of any with a budget for the lifetime: a release then
        reads all files of its period, and a cumulative series finds its steps in their names.
    rows
        Under ``replace-one``, the public number of rows, which is checked when the table is read.
        Under ``add-remove``, or if persons are protected, a public planning figure, which is never
        compared with the data. Of a cumulative series, a planning figure for all its steps
        together; under ``replace-one``, the first reading of a step fixes its number of rows.
    rows_by_period
        Number of rows of the periods in which it is not `rows`, by their labels.
    period
        The column whose dates decide the period or the step of each row, if files do not. The date
        of a row must never change between versions; see `DatePeriod` for what a change costs. With
        a budget per period, a release has the rows of its period; under ``replace-one`` only
        cumulative series are possible, because the number of rows of each period would be public,
        and dates are then not protected. With a budget for the lifetime, only cumulative series
        look at dates, and any other release has all rows of the table, with or without a date.
    columns
        Columns to publish, in the order of the matrix: numbers with bounds, or levels. A name with
        ``*`` is a pattern: it stands for all columns of the table that match it, and ``"*"`` for
        all that no other name or pattern matches.
    exclude
        Names and patterns of columns that no pattern in `columns` stands for.
    intercept
        Whether the matrix starts with a column that is 1 in every row before normalisation. It
        carries the means, and with levels the sizes and means of classes. A data set that was
        registered without an intercept keeps having none, unless the key is stated.
    budget
        Budget of the data set, fixed at registration. A cumulative series is charged once, for all
        steps in its window: a period of the budget, or with ``per: lifetime`` the steps that the
        request states.
    neighbours
        Neighbour relation: ``replace-one`` (one row is replaced; the number of rows is public) or
        ``add-remove`` (one row is added or removed; the number of rows is private).
    privacy_unit
        Protected unit: ``row``; ``cell`` (for noisy rows only); or, for persons with all their
        rows, the name of the column that identifies persons, which must not be one of `columns`.
        Rows without a value in it are left out.
    persons
        Number of persons, required if persons are protected. It is then the divisor of the matrix,
        in place of `rows`.
    arithmetic
        ``floating-point`` allows runs that a Prefect server starts to ask for mechanisms whose
        noise is not exact. A steward's own command needs no such permission.
    approval
        ``required``: a release is charged only if somebody else has approved it, which only a run
        that a Prefect server starts waits for. It can be changed by registering the contract again.
    """

    id: Slug
    title: Line
    curator: Line
    source: AnySource
    rows: Annotated[int, Field(strict=True, ge=1, le=10**12)]
    columns: Annotated[dict[str, AnyColumn], Field(min_length=1, max_length=MAX_COLUMNS)]
    budget: Budget
    exclude: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    intercept: Annotated[bool, Field(strict=True)] = True
    neighbours: Neighbours = Neighbours.REPLACE_ONE
    privacy_unit: Annotated[str, Field(min_length=1)] = _ROW
    persons: Annotated[int | None, Field(strict=True, ge=1, le=10**10)] = None
    period: DatePeriod | None = None
    rows_by_period: RowsByPeriod | None = None
    arithmetic: Literal["exact", "floating-point"] = "exact"
    approval: Literal["required"] | None = None

    _patterns: Mapping[str, tuple[str, ...]] = PrivateAttr(default_factory=dict)

    @field_validator("columns")
    @classmethod
    def _derive(cls, columns: dict[str, AnyColumn]) -> dict[str, AnyColumn]:
        return with_derived(columns)

    @model_validator(mode="before")
    @classmethod
    def _normalise(cls, data: Any) -> Any:
        """All texts in NFC but those of the source: a file has the name that it has."""
        if not isinstance(data, Mapping):
            return data
        return {key: x if key == "source" else in_nfc(x) for key, x in data.items()}

    @model_validator(mode="after")
    def _check_persons(self) -> Self:
        if self.protected_unit != "person":
            if self.persons is not None:
                raise families.PERSONS(
                    "'persons' is given, but 'privacy_unit' does not name a column that "
                    "identifies persons.",
                    "Set 'privacy_unit' to the column that identifies persons, or remove "
                    "'persons'.",
                )
            return self
        if self.privacy_unit in self.columns:
            raise families.PERSONS(
                "'privacy_unit' names '{column}', which is also one of 'columns'.",
                "Remove it from 'columns': the column that identifies persons cannot be published.",
                column=self.privacy_unit,
            )
        if has_unprintable(self.privacy_unit) or self.privacy_unit != self.privacy_unit.strip():
            raise families.PERSONS(
                "'privacy_unit' has control characters, or blanks at its start or end.",
                "Write the column's name as the table has it.",
            )
        if self.persons is None:
            raise families.PERSONS(
                "'privacy_unit: {column}' protects persons, so 'persons' is required.",
                "Set 'persons' to the number of persons; to protect rows, write 'privacy_unit: "
                "row'.",
                column=self.privacy_unit,
            )
        if self.persons > self.rows:
            raise families.PERSONS("'persons' must not exceed 'rows'.")
        if self.budget.per != "lifetime":
            raise families.PERSONS(
                "'budget.per: {per}' cannot be combined with 'privacy_unit: {column}': a person "
                "may have rows in many periods, and would spend the budget of each.",
                "Write 'per: lifetime' and a source without '{{year}}', or 'privacy_unit: row'.",
                column=self.privacy_unit,
                per=self.budget.per,
            )
        return self

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.protected_unit == "cell" and isinstance(self.source, DatabaseTable):
            raise families.DATABASE(
                "'privacy_unit: cell' needs Parquet files, and this is a database.",
                "Write 'privacy_unit: row', or name a column that identifies persons.",
            )
        count = max(self.count, *(self.rows_by_period or {}).values(), 1)
        if self.budget.delta >= 1 / count:
            raise wordings.delta_too_large(self.count_key, 1 / count)
        per = self.budget.per
        check_source(
            location(self.source),
            per,
            has_date_column=self.period is not None,
            is_database=isinstance(self.source, DatabaseTable),
        )
        check_date_column(self.period, self.columns, protects_rows=self.protected_unit == "row")
        check_rows_by_period(self.rows_by_period, per, counts_rows=self.person_column is None)
        for name in self.exclude:
            if name in self.columns:
                raise families.COLUMNS(
                    "'{column}' is in 'columns' and in 'exclude'.",
                    "Remove it from one of the two.",
                    column=name,
                )
        self._check_names()
        self._check_derived()
        has_patterns = any("*" in name for name in self.columns)
        for name, column in self.columns.items():
            if not (has_patterns and isinstance(column, Derived)):  # whose inputs are not known yet
                column.check_declared(name)
        return self

    def _check_derived(self) -> None:
        """Refuse to compute columns from cells that must not become numbers of another column."""
        period = None if self.period is None else self.period.column
        for name, column in self.columns.items():
            if not isinstance(column, Derived):
                continue
            if self.protected_unit == "cell":
                raise families.COLUMNS(
                    "columns.{column}: 'privacy_unit: cell' protects single cells, and one that "
                    "others are computed from would change several.",
                    "Remove the column, or write 'privacy_unit: row'.",
                    column=name,
                )
            for each in column.derivation.inputs:
                if each.name == self.person_column:
                    raise families.PERSONS(
                        "columns.{column}: '{input}' identifies persons, so nothing can be "
                        "computed from it.",
                        "Name another column in 'from'.",
                        column=name,
                        input=each.name,
                    )
                if each.name == period and each.coding != DayCells():
                    raise families.PERIODS(
                        "columns.{column}: '{input}' decides the period of each row, and is not a "
                        "number.",
                        "Compute 'age' or 'days between' from it, or name another column in "
                        "'from'.",
                        column=name,
                        input=each.name,
                    )

    def _check_names(self) -> None:
        """Refuse names of columns that the matrix cannot have."""
        if not self.columns:
            raise wordings.no_entries()
        if any(not name or name != name.strip() for name in self.columns):
            raise families.COLUMNS("A column's name is empty, or starts or ends with a blank.")
        published = [c for n, column in self.columns.items() for c in column.matrix_names(n)]
        if any(has_unprintable(name) for name in self.columns):
            raise families.COLUMNS(
                "A name in 'columns' has a control character.", "Rename the column."
            )
        for name, column in self.columns.items():
            if any(has_unprintable(each) for each in column.matrix_names(name)):
                raise families.LEVELS(
                    "columns.{column}: a level has a control character.",
                    "Remove it from 'levels'. If it stands for a letter such as ä, state the "
                    "file's encoding under 'source', such as encoding: cp1252.",
                    column=name,
                )
        counts = Counter([INTERCEPT, *published])
        if repeated := [name for name, times in counts.items() if times > 1]:
            raise families.COLUMNS(
                "Two columns of the matrix would be named '{name}'.",
                "Rename one of the columns or levels.",
                name=repeated[0],
            )
        if len(published) > MAX_COLUMNS:
            raise families.COLUMNS(
                "The matrix would have more than {most} columns.", most=MAX_COLUMNS
            )

    @property
    def protected_unit(self) -> ProtectedUnit:
        """The protected unit that the guarantees are for."""
        unit = self.privacy_unit
        return "row" if unit == _ROW else "cell" if unit == _CELL else "person"

    @property
    def person_column(self) -> str | None:
        """The column that identifies persons, if persons are protected."""
        return self.privacy_unit if self.protected_unit == "person" else None

    @property
    def count(self) -> int:
        """The divisor of the matrix: `persons` if they are protected, else `rows`."""
        return self.persons or self.rows

    @property
    def checks_rows(self) -> bool:
        """Whether `rows` is public, and must equal the number of rows of the table."""
        if self.dates is not None and self.dates.starts:
            return False
        return self.neighbours.count_is_public and self.person_column is None

    @property
    def dates(self) -> SelectedPeriod | None:
        """Which rows are read by their dates, or those of their files; None if all are."""
        if isinstance(self.source, DatedFiles):
            return self.source.period
        return self.period if isinstance(self.period, SelectedPeriod) else None

    @property
    def count_key(self) -> str:
        """``persons`` or ``rows``: the key that `count` comes from, and the unit that it counts."""
        return "persons" if self.persons else "rows"

    @property
    def names(self) -> list[str]:
        """Names of the table's columns."""
        return list(self.columns)

    def levels(self, name: str) -> tuple[str | float, ...] | None:
        """Levels of a column; None if it is numeric."""
        return self.columns[name].categories

    @property
    def codings(self) -> dict[str, Any]:
        """How the cells of each column become numbers; see `tables.formats.values.Coding`."""
        return {name: column.coding for name, column in self.columns.items()}

    @property
    def table_columns(self) -> dict[str, ColumnKind]:
        """The columns of the table that are read to be published, or to compute others."""
        stored: dict[str, ColumnKind] = {
            n: kind for n, kind in self.columns.items() if not isinstance(kind, Derived)
        }
        dates = dates_in(self.columns)
        for column in self.columns.values():
            if isinstance(column, Derived):
                for each in column.derivation.inputs:
                    stored.setdefault(each.name, column.undeclared(dates, each.name))
        return stored

    def computed_from(self, name: str) -> list[str]:
        """The columns that are computed from a column of the table."""
        return [
            column
            for column, kind in self.columns.items()
            if isinstance(kind, Derived) and name in [x.name for x in kind.derivation.inputs]
        ]

    @property
    def missing_codes(self) -> dict[str, tuple[float, ...]]:
        """Numbers that stand for a missing value, of the numeric columns that declare some."""
        columns = self.columns.items()
        return {name: column.missing_codes for name, column in columns if column.missing_codes}

    def window(self, version: str) -> str:
        """See `budget_window`."""
        return budget_window(self.budget, version)

    def for_version(self, version: str) -> Contract:
        """The contract with the files of one version as its source, and the rows of its period."""
        window, per = self.window(version), self.budget.per
        place = location(self.source)
        files = span_of(place)
        if per == "lifetime":
            return self if files is None else self._with_files(None)
        if self.period is not None and self.dates_are_for_series:
            raise families.PERIOD(
                "'{column}' decides the period of each row: under 'neighbours: {neighbours}' the "
                "number of rows of each period would be public, and its dates not protected.",
                "Declare 'neighbours: add-remove' in the contract, or write 'cumulative' in the "
                "request, whose steps have public numbers of rows.",
                column=self.period.column,
                neighbours=self.neighbours,
            )
        dated = self._with_rows_of(window)
        if self.period is not None:
            return dated._with_period(self.period.selected(per, window))
        if files != per:
            return dated._with_files(FILES.selected(per, window))
        source = at_location(self.source, with_period(place, per, window))
        return dated.model_copy(update={"source": source})

    def for_steps(self, steps: StepDays, count: int) -> Contract:
        """The contract with the rows of the first steps of a series, each with its step."""
        starts, dated = steps.starts[: count + 1], self._with_rows_of(steps.window)
        if self.period is not None:
            return dated._with_period(self.period.selected(steps.every, steps.window, starts))
        files = span_of(location(self.source))
        if files is None or isinstance(self.source, DatabaseTable):
            raise families.REQUEST_USE(
                "'cumulative' needs the step of each row, which nothing in the contract gives.",
                "Declare the column of dates, such as 'period: {{column: visited}}', or put the "
                "period of each file into its name, such as visits-{{year}}-{{month}}.csv.",
            )
        if (crossing := steps.crossing(files)) is not None:
            raise families.REQUEST_USE(
                "'cumulative' has steps of a {every}, but the file of {label} may have rows of two "
                "steps, or of days outside of the series.",
                "Choose steps of which each has whole files, store one file for each day, or "
                "declare the column of dates as 'period'.",
                every=steps.every,
                label=crossing,
            )
        return dated._with_files(FILES.selected(steps.every, steps.window, starts))

    def _with_rows_of(self, window: str) -> Contract:
        rows = (self.rows_by_period or {}).get(window, self.rows)
        return self.model_copy(update={"rows": rows})

    def _with_period(self, period: SelectedPeriod) -> Contract:
        return self.model_copy(update={"period": period})

    def _with_files(self, period: SelectedPeriod | None) -> Contract:
        if isinstance(self.source, DatabaseTable):
            raise ValueError
        return self.model_copy(update={"source": DatedFiles.of(self.source, period)})

    @property
    def dates_are_for_series(self) -> bool:
        """Whether only cumulative series may read rows by their dates, which are not protected."""
        per_period = self.budget.per != "lifetime"
        return self.period is not None and per_period and self.neighbours.count_is_public

    def with_columns(self, names: Mapping[str, Sequence[str]]) -> Contract:
        """The contract with columns of the table in place of patterns."""
        columns = {name: self.columns[entry] for entry in names for name in names[entry]}
        update = {"columns": with_derived(columns), "exclude": ()}
        contract = self.model_copy(update=update)
        contract._check_derived()
        for name, column in contract.columns.items():
            column.check_declared(name)
        contract._patterns = {
            entry: tuple(names[entry]) for entry in names if entry not in names[entry]
        }
        contract._check_names()
        return contract

    @property
    def patterns(self) -> Mapping[str, tuple[str, ...]]:
        """The patterns of the declared contract, and the columns that replaced each of them."""
        return self._patterns

    @property
    def columns_without_bounds(self) -> list[str]:
        """Names of the numeric columns without bounds, which need estimated constants."""
        return [name for name, column in self.columns.items() if not column.has_bounds]

    def without_column(self, name: str) -> Contract:
        """The contract of the other columns."""
        columns = {key: column for key, column in self.columns.items() if key != name}
        return self.model_copy(update={"columns": columns})

    def with_integer_bounds(self) -> Contract:
        """The contract with integer bounds and centres, and scales of 1."""
        columns = {name: column.whole(name) for name, column in self.columns.items()}
        return self.model_copy(update={"columns": columns})

    def terms(self) -> dict[str, Any]:
        """The facts that are fixed at registration, because the guarantees depend on them."""
        return {
            "id": self.id,
            "neighbours": self.neighbours,
            "privacy_unit": self.privacy_unit,
            "budget": self.budget.model_dump(),
            "columns": [column.terms(name) for name, column in self.columns.items()],
            "intercept": self.intercept,
            "period": self.period and self.period.model_dump(include={"column", "timezone"}),
            **self._terms_of_source(),
        }

    def _terms_of_source(self) -> dict[str, Any]:
        """How dates of periods are written: read in another way, a row could be in two periods."""
        written = None if self.period is None else notation_of(self.source).dates
        return {} if written is None else {"source": {"dates": written}}
