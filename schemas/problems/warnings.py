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
    "The guarantee holds, but averages are off by that ratio: correct the names or the contract.",
)
def persons_differ(found: int | None, declared: int | None) -> None:
    """Sums are divided by the declared number of persons, which is not the actual one."""


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
    "{lines} lines are blank, malformed or of the wrong width; they add nothing to the matrix.",
)
def malformed_lines(lines: int) -> None:
    """Lines of the table could not be read as rows."""


@problem(
    "GRM-915",
    Notice,
    "More than one row in twenty has a missing, invalid or out-of-bounds cell in: {columns}.",
    "If the bounds are wrong, correct them for the next data set from public knowledge; never "
    "from this page alone, because bounds are public.",
)
def many_cells_repaired(columns: tuple[str, ...]) -> None:
    """The contract does not describe the table well, so the release is less accurate."""


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
    "GRM-904",
    Notice,
    "'{former}' is now called '{present}'.",
    "Write '{present}': the next version no longer accepts '{former}'.",
)
def former_name(former: str, present: str) -> None:
    """A contract, a request or a command uses a name that an earlier version of Gramercy had."""
