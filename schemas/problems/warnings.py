"""Warnings on the terminal and on pages; nothing was refused: codes 900 to 999."""

from __future__ import annotations

from gramercy.schemas.problem import Notice, problem

# On the terminal, about what a command did.


@problem("GRM-900", Notice, "{done}, but a later step failed: {problem}")
def later_step_failed(done: str, problem: str) -> None:
    """The main result is complete, but an estimate, a report or a page that follows it is not."""


@problem("GRM-901", Notice, "The ledger was not read: that needs {packages}.")
def ledger_not_read(packages: str) -> None:
    """Gramercy was installed for analysts, without the packages that read a ledger."""


@problem("GRM-902", Notice, "{release} was withdrawn: {reason}")
def release_withdrawn(release: str, reason: str) -> None:
    """The curator asks everyone to stop using this release."""


@problem(
    "GRM-905",
    Notice,
    "{period} ends on {last_day}: rows that are added until then would not be in this release.",
    "Publish it when it is over: another release of the same period needs a version such as "
    "'{period}.2', and another charge.",
)
def period_not_over(period: str, last_day: str) -> None:
    """A period was named whose last day has not passed."""


@problem(
    "GRM-903",
    Notice,
    "The signed listing of the archive was not used: {problem}",
    "The releases themselves were read instead.",
)
def listing_not_used(problem: str) -> None:
    """The listing of an archive is damaged, or signed by a key that is not trusted."""


# For the steward alone: facts about the private table.


@problem(
    "GRM-910",
    Notice,
    "The files have changed since this version was published.",
    "To publish the new data, give it a new version: it is a new release and a new charge.",
)
def table_changed() -> None:
    """The size or date of a file has changed. The release describes the table before the change."""


@problem(
    "GRM-911",
    Notice,
    "The table has {found} persons, but 'persons' in the contract is {declared}.",
    "The guarantee holds for each id: a person with two ids, or with one id in two spellings, "
    "counts as two. Averages are off by that ratio. Correct the ids or the contract.",
)
def persons_differ(found: int | None, declared: int | None) -> None:
    """Sums are divided by the declared number of persons, which is not that of the ids."""


@problem(
    "GRM-912",
    Notice,
    "Missing or invalid cells were set to the column's centre, or to no level: {columns}.",
)
def cells_filled(columns: str) -> None:
    """Cells held no number or no declared level; the columns with the most such cells are named."""


@problem("GRM-913", Notice, "Cells were out of bounds and were clamped: {columns}.")
def cells_clamped(columns: str) -> None:
    """Cells were beyond the declared bounds; the columns with the most such cells are named."""


@problem(
    "GRM-914",
    Notice,
    "{lines} lines are blank, malformed or of the wrong width: none of their cells was used.",
    "Write the file again with one line for each row, and quotes around fields with commas.",
)
def malformed_lines(lines: int) -> None:
    """Lines of the table could not be read as rows. They are not among the missing cells."""


@problem(
    "GRM-915",
    Notice,
    "More than one row in twenty has a missing, invalid or out-of-bounds cell in: {columns}.",
    "If the bounds are wrong, correct them for the next data set from public knowledge; never "
    "from this page alone, because bounds are public.",
)
def many_cells_repaired(columns: tuple[str, ...]) -> None:
    """The contract does not describe the table well, so the release is less accurate."""


# For the steward alone: a table that could not be read well, after a release or in a check.


@problem(
    "GRM-930",
    Notice,
    "{release} contains nothing but noise: not one cell of the table could be used.",
    "Withdraw it, and find the cause with 'gramercy check REQUEST'. The corrected table needs a "
    "new version, which is a new charge.",
)
def release_is_noise(release: str) -> None:
    """All cells were missing, unreadable or not a declared level, so nothing was summed."""


@problem(
    "GRM-931",
    Notice,
    "Not one cell is a number in: {columns}.",
    "Write numbers without units and thousands separators: 1234.5, not '1.234,5 kg'. For decimal "
    "commas, state 'decimal: \",\"' under the contract's 'source', next to its 'path'. Declare "
    "categories as 'levels'.",
)
def cells_not_numbers(columns: tuple[str, ...]) -> None:
    """Columns declared as numbers contain text, numbers in another notation, or nothing."""


@problem(
    "GRM-932",
    Notice,
    "Not one cell is a declared level in: {columns}.",
    "Compare the spelling: a cell 2.0 is not the text '2'. Declare numbers without quotes: "
    "'levels: [1, 2]'.",
)
def cells_not_levels(columns: tuple[str, ...]) -> None:
    """Levels are compared as text if they are declared as text, and as numbers otherwise."""


@problem(
    "GRM-933",
    Notice,
    "Many cells are missing, unreadable or not a declared level: {columns}.",
    "If they should not be, correct their notation in the table, or the levels in the contract.",
)
def many_cells_missing(columns: tuple[str, ...]) -> None:
    """More than one cell in five could not be used; such cells carry no information."""


@problem(
    "GRM-934",
    Notice,
    "Many cells are out of bounds: {columns}.",
    "Compare the unit of the cells with that of the bounds, such as grams with kilograms, or 35 "
    "with 0.35. Declare codes for missing values, such as -9, in the contract: missing: [-9].",
)
def many_cells_out_of_bounds(columns: tuple[str, ...]) -> None:
    """More than one cell in twenty is clamped to a bound."""


@problem(
    "GRM-935",
    Notice,
    "Many lines are not rows: {share} of {lines} are blank, malformed or of the wrong width.",
    "Write the file again with one line for each row, and quotes around fields with commas.",
)
def many_lines_malformed(share: str, lines: int) -> None:
    """More than one line in twenty could not be read as a row."""


@problem(
    "GRM-936",
    Notice,
    "Declared levels that no cell has: {levels}.",
    "If that is unexpected, compare their spelling with the table's.",
)
def levels_without_cells(levels: tuple[str, ...]) -> None:
    """A check counts the cells of every declared level; for some levels there are no cells."""


@problem(
    "GRM-938",
    Notice,
    "Rows without a readable date, which are in no period: {rows}.",
    "Write dates as 2026-11-23, or as dates in Parquet.",
)
def rows_without_date(rows: int) -> None:
    """Where dates decide the period, a row without one is never published."""


@problem(
    "GRM-939",
    Notice,
    "{count} of the {persons} ids in '{column}' differ from another id only in capital letters or "
    "blanks.",
    "Where two of them are one person, the guarantee holds for each of the two, not for the "
    "person. Write every id in one way before a release: in the file, or in a view of the "
    "database, such as upper(replace({column}, ' ', '')).",
)
def ids_alike(count: int, persons: int | None, column: str) -> None:
    """A check compares the ids of persons without case and blanks; a release does not."""


@problem(
    "GRM-937",
    Notice,
    "These are exact facts about private cells, without a privacy guarantee: never publish or "
    "send them.",
    "Use them to correct files, units and the spelling of levels. Do not choose bounds, centres "
    "or scales by them: 'scaling: private' finds centres and scales within the budget.",
)
def check_is_private() -> None:
    """A check is not charged, so constants that are chosen by its result would leak the data."""


# On public pages, about how far a release can be used.


@problem(
    "GRM-920",
    Notice,
    "In the worst case the best attacker guesses right {correct:.1f} % of the time; blind guessing "
    "is right 50 % of the time.",
    "A smaller epsilon protects more.",
)
def weak_protection(correct: float) -> None:
    """The guarantee is weaker than 1-GDP."""


@problem(
    "GRM-921",
    Notice,
    "{sizes}",
    "Read single entries with great care, and use the {repair} matrix.",
)
def mostly_noise(sizes: str, repair: str) -> None:
    """The norm of the noise exceeds that of the matrix, or no eigenvalue exceeds the noise."""


@problem("GRM-922", Notice, "{sizes}", "Large structure is reliable; single small entries are not.")
def noise_as_large_as_signal(sizes: str) -> None:
    """The norm of the noise is more than half of that of the matrix."""


@problem(
    "GRM-942",
    Notice,
    "A correlation is typically off by {typical:.2g}, some by as much as {largest:.2g}: {details}.",
    "Do not rely on single correlations.",
)
def correlations_unreliable(typical: float, largest: float, details: str) -> None:
    """Noise and normalisation together move correlations by more than 0.2, or hide most of them."""


@problem(
    "GRM-943",
    Notice,
    "A correlation is typically off by {typical:.2g}, some by as much as {largest:.2g}: {details}.",
    "Rely on correlations that are clearly larger than that.",
)
def correlations_uncertain(typical: float, largest: float, details: str) -> None:
    """Noise and normalisation together may move correlations by up to 0.1 or more.

    The effect of the normalisation is simulated: rows whose moments after normalisation are the
    released ones are compared before and after it. Also shown where the effect is not bounded:
    for unit rows, and where shares of missing cells are not published.
    """


@problem(
    "GRM-944",
    Notice,
    "Without an intercept, these are not correlations about the means, but about the public "
    "centres. If the centres are off, a correlation is typically off by {centres:.2g}; noise and "
    "normalisation add {typical:.2g}: {details}.",
    "Write 'intercept: true' in the contract of the next data set.",
)
def correlations_about_centres(centres: float, typical: float, details: str) -> None:
    """A mean that is off its public centre looks like a strong common factor of all columns."""


@problem(
    "GRM-923",
    Notice,
    "Columns whose own variation is within the noise: {columns}.",
    "A smaller public 'scale' gives a numeric column more weight; a level with few rows cannot be "
    "seen.",
)
def columns_lost(columns: str) -> None:
    """Diagonal entries are less than two standard deviations of the noise."""


@problem(
    "GRM-924",
    Notice,
    "Columns whose own precision is within the noise: {columns}.",
    "Publish the second moment instead: it shows more.",
)
def precision_lost(columns: str) -> None:
    """Diagonal entries of a precision matrix are less than two standard deviations of the noise."""


@problem(
    "GRM-925",
    Notice,
    "{count:.0f} {unit} for {columns} columns: sampling alone makes many entries uncertain.",
    "Use penalised estimates only; the intervals here cover the noise alone.",
)
def few_rows(count: float, unit: str, columns: int) -> None:
    """There are fewer than ten rows or persons for each column."""


@problem(
    "GRM-926",
    Notice,
    "{count:.0f} rows for {columns} columns: the matrix is singular.",
    "Use penalised estimates only; the intervals here cover the noise alone.",
)
def fewer_rows_than_columns(count: float, columns: int) -> None:
    """There are fewer rows than columns."""


@problem(
    "GRM-927",
    Notice,
    "This number is private, and known to about {percent:.0f} %. All entries share that error.",
    "Correlations are not affected.",
)
def uncertain_count(percent: float) -> None:
    """The noisy number of rows or persons, by which the matrix is divided, is imprecise."""


@problem(
    "GRM-928",
    Notice,
    "Columns with long tails: {columns}.",
    "Long rows count less, so the standard deviations are probably too small, by a tenth or more. "
    "The logarithm of such a column has shorter tails.",
)
def long_tails(columns: str) -> None:
    """Clipping rows to the radius removed much of the variance of these columns."""


@problem(
    "GRM-929",
    Notice,
    "Columns with cells near or beyond their bounds: {columns}.",
    "Cells are clamped to the bounds that this release states, so means and standard deviations "
    "may be off by more than their intervals say. Use the quantiles from the histograms, where "
    "cells are not clamped; or publish the logarithm of such a column. A code for missing values, "
    "such as -9, belongs in the contract: 'missing: [-9]'.",
)
def cells_near_bounds(columns: str) -> None:
    """The histograms show more cells near or beyond the bounds of private constants than noise.

    Fewer cells may be beyond the bounds of other columns: the noise hides them.
    """


# On a plan, before anything is charged.


@problem("GRM-940", Notice, "This release would be useless: {reason}.", "{remedy}")
def plan_useless(reason: str, remedy: str) -> None:
    """The noise is larger than the largest possible matrix, or than its typical diagonal entry."""


@problem(
    "GRM-941",
    Notice,
    "A correlation would typically be off by {error}: {details}.",
    "{remedy}",
)
def plan_uncertain(error: str, details: str, remedy: str) -> None:
    """Noise and normalisation may together move correlations by more than 0.05.

    Predicted from public facts for several tables within the declared bounds: the columns' spread
    and means are unknown before a release.
    """


# On public pages and in Python, about what the numbers mean.


@problem(
    "GRM-950",
    Notice,
    "{release}: every row was divided by its own length, so correlations are associations of "
    "directions, not Pearson correlations of the table.",
    "For means, standard deviations and correlations in the columns' own units, publish with "
    "'normalisation: clip' and an intercept.",
)
def unit_rows(release: str) -> None:
    """Rows far from the centres count as much as near ones, and the rows' lengths are lost."""
