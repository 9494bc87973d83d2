"""Planning, validating, publishing, averaging, estimating, withdrawing: codes 700 to 749."""

from __future__ import annotations

from gramercy.schemas.errors import (
    BundleError,
    ContractError,
    GuaranteeRefused,
    InvalidValue,
    LateRun,
    RequestError,
    SpentFailure,
    StepFailed,
    TableError,
    UntrustedLedger,
)
from gramercy.schemas.problem import problem

_REPORT_IT = "This is a defect of Gramercy: please report it."

# Reading contracts and requests.


@problem(
    "GRM-700",
    ContractError,
    "{file}: this contract does not exist.",
    "Check 'dataset' in the request: it names a file in the folder 'contracts' of the home, or "
    "is a path.",
)
def contract_not_found(file: str) -> None:
    """The contract that a request or a command names does not exist."""


@problem("GRM-701", RequestError, "{file}: no such file.", "Check the path of the request.")
def request_not_found(file: str) -> None:
    """The request that a command names does not exist."""


@problem("GRM-702", ContractError, "{file} is a folder.", "Name the contract's YAML file in it.")
def contract_is_folder(file: str) -> None:
    """A folder is given where a contract is expected."""


@problem("GRM-703", RequestError, "{file} is a folder.", "Name the request's YAML file in it.")
def request_is_folder(file: str) -> None:
    """A folder is given where a request is expected."""


@problem(
    "GRM-704",
    InvalidValue,
    "The file cannot be read ({reason}).",
    "It must be UTF-8 text that you may read.",
)
def file_unreadable(reason: str) -> None:
    """The operating system refused to read a YAML file, or the file is not UTF-8 text."""


@problem(
    "GRM-705",
    InvalidValue,
    "A value is impossible, such as the date 2026-02-31.",
    "Correct the value.",
)
def yaml_value_impossible() -> None:
    """A YAML file has a date that does not exist, a number that is too long, or endless nesting."""


@problem(
    "GRM-747",
    InvalidValue,
    "The file has more than {characters} characters or, with all aliases expanded, more than "
    "{nodes} values.",
    "Is it a request or a contract, and not the table? If so, use fewer aliases ('*name'), or "
    "patterns for columns that are declared alike.",
)
def yaml_too_large(characters: int, nodes: int) -> None:
    """A YAML file is larger than a contract can be, perhaps by aliases of aliases."""


@problem("GRM-748", InvalidValue, "A key is a list or a mapping.", "Write every key as a text.")
def yaml_key_not_text() -> None:
    """An alias of a list or a mapping is used as a key of a YAML file."""


@problem(
    "GRM-745",
    ContractError,
    "The name of the column '{name}' has invisible characters, or ones that break or reverse its "
    "line.",
    "Rename the column in the table.",
)
def column_name_hidden(name: str) -> None:
    """A new data set has a name of a column or a level that readers cannot see as it is."""


@problem(
    "GRM-749",
    ContractError,
    "The names of the columns '{first}' and '{second}' look the same.",
    "Rename one of them in the table.",
)
def column_names_alike(first: str, second: str) -> None:
    """A new data set has two columns or levels whose names differ only in how they are encoded."""


@problem("GRM-706", InvalidValue, "Line {line}: {reason}.", "Correct the YAML there.")
def yaml_malformed(line: int, reason: str) -> None:
    """The file is not YAML: a quote, a bracket or an indentation is wrong, or a key is repeated."""


@problem(
    "GRM-707",
    InvalidValue,
    "The file has a control character that YAML does not allow.",
    "Remove it, or save the file as plain UTF-8 text.",
)
def yaml_character() -> None:
    """The file contains a character that cannot be part of YAML, such as a null byte."""


@problem(
    "GRM-708",
    ContractError,
    "{file}: the folder of the contract must not have '{{year}}' or another placeholder in "
    "its name.",
    "Rename the folder.",
)
def folder_named_as_placeholder(file: str) -> None:
    """Placeholders for the period of the data would be replaced in the folder's name as well."""


@problem(
    "GRM-709",
    RequestError,
    "'dataset' is '{dataset}', but the contract of that name has the id '{id}'.",
    "Give the contract's file the name of its id.",
)
def contract_has_other_id(dataset: str, id: str) -> None:
    """The name of a contract in the folder 'contracts' differs from the id in it."""


# What a request combines.


@problem(
    "GRM-710",
    RequestError,
    "'estimates' must be empty: this release publishes {kind}, and no second moment.",
    "Write 'estimates: []'.",
)
def no_second_moment_to_estimate_from(kind: str) -> None:
    """Estimates are computed from a second moment, and this mechanism publishes none."""


@problem(
    "GRM-711",
    RequestError,
    "'engine' cannot be used with '{mechanism}', which publishes rows in their order.",
    "Leave the key out: one process reads the table.",
)
def rows_need_one_process(mechanism: str) -> None:
    """A mechanism that publishes noisy rows cannot run on a cluster."""


@problem(
    "GRM-712",
    RequestError,
    "'mechanism.name' is '{mechanism}', which does not make reports.",
    "Write 'name: local'.",
)
def mechanism_makes_no_reports(mechanism: str) -> None:
    """Only reports of the mechanism 'local' can be averaged."""


@problem(
    "GRM-713",
    RequestError,
    "The normalisation 'whole' and the mechanism 'integer-rows' require each other.",
    "Use both, or neither.",
)
def whole_numbers_mismatch() -> None:
    """'integer-rows' publishes rows of whole numbers, and only 'whole' keeps them whole."""


@problem(
    "GRM-714",
    RequestError,
    "'folds' cannot be used with '{mechanism}'.",
    "Use 'gaussian' or 'gaussian-iid': a sum of their noise is of the same family.",
)
def folds_not_supported(mechanism: str) -> None:
    """The folds are summed to one matrix, and the law of its noise must be known exactly."""


@problem(
    "GRM-715",
    RequestError,
    "'folds' cannot be used where persons are protected.",
    "Leave the key out.",
)
def folds_of_persons() -> None:
    """Folds are random parts of the rows, and a person's rows would be in several of them."""


@problem(
    "GRM-716",
    RequestError,
    "'folds' is {folds}, but the table has only {rows} rows.",
    "Ask for fewer folds.",
)
def more_folds_than_rows(folds: int, rows: int) -> None:
    """There are more folds than rows."""


@problem(
    "GRM-717",
    GuaranteeRefused,
    "{mechanism}: this noise has no finite epsilon at delta={delta:g}.",
    "Ask for more noise, or a larger delta.",
)
def no_finite_epsilon(mechanism: str, delta: float) -> None:
    """The mechanism may fail with a probability greater than the requested delta."""


@problem(
    "GRM-718",
    GuaranteeRefused,
    "{mechanism}: the request is for epsilon={epsilon:g} and delta={delta:g}; this noise has "
    "delta={exact_delta:.4g} at that epsilon, and epsilon={exact_epsilon:.4g} at that delta.",
    "Use 'calibration: exact', which finds the noise that is needed.",
)
def guarantee_too_weak(
    mechanism: str, epsilon: float, delta: float, exact_delta: float, exact_epsilon: float
) -> None:
    """The exact guarantee of the noise is weaker than requested, as with some published scales."""


@problem(
    "GRM-719",
    LateRun,
    "This run was scheduled for version '{scheduled}', but the version is now '{current}', and "
    "the table may have changed. Nothing was charged.",
    "Start the deployment again, or wait for the next scheduled run.",
)
def run_too_late(scheduled: str, current: str) -> None:
    """The run started over an hour late, and would label present data with an earlier version."""


# Publishing.


@problem(
    "GRM-720",
    UntrustedLedger,
    "The archive has '{release}', but the ledger does not: the ledger is older than the archive.",
    "Restore the ledger that belongs to the archive: missing charges are still spent.",
)
def ledger_lacks_release(release: str) -> None:
    """A release in the archive was never charged in this ledger, so charges may be missing."""


@problem(
    "GRM-721",
    BundleError,
    "{path} is missing, but it was published.",
    "Restore it from a copy: noise is never drawn again for a published release.",
)
def bundle_missing(path: str) -> None:
    """The ledger records the publication of a bundle that is not in the archive."""


@problem(
    "GRM-722",
    BundleError,
    "{path} is not the bundle that was published.",
    "Restore it from a copy: noise is never drawn again for a published release.",
)
def bundle_replaced(path: str) -> None:
    """The checksum of a bundle differs from the one that the ledger recorded at publication."""


@problem(
    "GRM-723",
    StepFailed,
    "{path}: the internal record cannot be written ({reason}).",
    "Free disk space, or make the folder writable. The release is published: the same request "
    "returns it.",
)
def internal_record_not_written(path: str, reason: str) -> None:
    """After publication, the steward's private record of the release could not be saved."""


@problem("GRM-724", StepFailed, "The sums that were computed do not match the request.", _REPORT_IT)
def sums_not_as_planned() -> None:
    """The step that reads the table and the step that draws noise disagree; nothing was drawn."""


@problem("GRM-725", StepFailed, "Noise of '{mechanism}' cannot be drawn.", _REPORT_IT)
def mechanism_not_drawable(mechanism: str) -> None:
    """The step that draws noise does not support this kind of mechanism."""


# Averaging reports.


@problem(
    "GRM-726",
    RequestError,
    "{path}: the reports of '{dataset}' are given twice.",
    "Name one release of each source: counting a person twice doubles their privacy loss.",
)
def reports_given_twice(path: str, dataset: str) -> None:
    """Two of the releases to average hold reports of the same persons."""


@problem(
    "GRM-727",
    RequestError,
    "There are {reports} reports, but the contract's 'rows' is {rows}.",
    "Name all sources, or correct the contract.",
)
def wrong_number_of_reports(reports: int, rows: int) -> None:
    """The sources together do not have as many reports as the contract declares rows."""


@problem(
    "GRM-728",
    RequestError,
    "This request was already published as '{release}', from other reports.",
    "Use another version; it is a new charge.",
)
def other_reports_averaged(release: str) -> None:
    """The same request and version were published before, from other sources."""


@problem(
    "GRM-729",
    RequestError,
    "{path} does not contain reports.",
    "Name releases that 'gramercy randomize' made.",
)
def not_reports(path: str) -> None:
    """A release to average was published by another mechanism than 'local'."""


@problem(
    "GRM-730",
    RequestError,
    "{path}: the columns of its reports differ from those of the request.",
    "Sources and server must use the same columns, bounds and scales.",
)
def reports_of_other_columns(path: str) -> None:
    """The columns of a source differ from those of the server's contract."""


@problem(
    "GRM-731",
    RequestError,
    "{path}: its reports were made with {key}: {theirs}, and the request has {key}: {requested}.",
    "Sources and server must use the same value.",
)
def reports_made_differently(path: str, key: str, theirs: str, requested: str) -> None:
    """A source used a mechanism, normalisation or guarantee other than the server requires."""


# Estimating and withdrawing.


@problem(
    "GRM-732",
    RequestError,
    "'{release}' is already a precision matrix.",
    "Estimate from a release of the second moment.",
)
def release_is_precision(release: str) -> None:
    """Estimators take a second moment, and this release does not have one."""


@problem(
    "GRM-744",
    RequestError,
    "'{release}' has histograms of its columns, and no matrix.",
    "Estimate from a release of the second moment. One that takes its constants from this release "
    "('scaling: {{from: {id}}}' in its request) pays for the matrix alone.",
)
def release_has_no_matrix(release: str, id: str) -> None:
    """Estimators take a second moment, and a release of marginals does not have one."""


@problem(
    "GRM-733",
    RequestError,
    "{estimator}: these settings give no finite matrix.",
    "Use a larger penalty.",
)
def estimate_not_finite(estimator: str) -> None:
    """The penalty is so small that the result overflows double precision."""


@problem(
    "GRM-734",
    UntrustedLedger,
    "{ledger}: '{release}' was not charged in this ledger.",
    "Withdraw the release where it was charged.",
)
def not_charged_here(ledger: str, release: str) -> None:
    """A release can be withdrawn only with the ledger that records its charge."""


@problem(
    "GRM-735",
    SpentFailure,
    "Publication of '{release}' was interrupted before its end.",
    "Repeat its request, which finishes the publication; then withdraw the release.",
)
def publication_unfinished(release: str) -> None:
    """The bundle is sealed, but the ledger does not record its publication yet."""


# Validating the table, before it is read.


@problem(
    "GRM-736",
    TableError,
    "{file}: columns of the contract are missing: {columns} (the file has {count} columns).",
    "Correct 'columns' or 'privacy_unit' in the contract, or the file.",
)
def columns_missing(file: str, columns: tuple[str, ...], count: int) -> None:
    """A Parquet file does not have all columns of the contract; at most ten are named."""


@problem(
    "GRM-737",
    TableError,
    "{file}: columns of the contract are missing: {columns} (the file has {count} columns).",
    "Correct 'columns' or 'privacy_unit' in the contract, or give the file a header line.",
)
def header_lacks_columns(file: str, columns: tuple[str, ...], count: int) -> None:
    """The header of a CSV file is missing, or does not have all columns of the contract.

    The header itself is not shown: without one, it would be a row of the private table.
    """


@problem(
    "GRM-738",
    TableError,
    "{file}: columns of the contract are missing: {columns}; the fields seem to be separated by "
    "{separators} instead of commas.",
    "State it in the contract, and decimal: ',' if numbers have decimal commas: "
    "source: {{path: ..., separator: ';'}}.",
)
def separator_not_comma(file: str, columns: tuple[str, ...], separators: str) -> None:
    """The header of a CSV file has the missing columns if it is split at another character.

    Or it is a single field, which contains semicolons, tabs or vertical bars.
    """


@problem(
    "GRM-739",
    TableError,
    "{file}: columns have other types than the contract declares: {columns}.",
    "Remove them from 'columns' (or, if a pattern matches them, add them to 'exclude'); or store "
    "numbers as numbers, and levels that are text as text.",
)
def column_types_differ(file: str, columns: tuple[str, ...]) -> None:
    """A file states a column type that does not match the contract."""


@problem(
    "GRM-740",
    TableError,
    "{file}: column '{column}' identifies persons, but has the type {type}.",
    "Store it as whole numbers or text.",
)
def person_column_type(file: str, column: str, type: str) -> None:
    """Persons are identified by whole numbers or text; other types have several spellings."""


@problem(
    "GRM-741",
    TableError,
    "{file}: column '{column}' has whole numbers here, but text in other files.",
    "Store it as text in all files, with the same spelling (a CSV file has text).",
)
def person_column_mixed(file: str, column: str) -> None:
    """7 and 007 are the same number but different texts, so one person could count as two."""


# A look at the table for the steward, without a charge.


@problem(
    "GRM-742",
    TableError,
    "{source}: columns without a single cell that a release could use: {columns}.",
    "Fix the table or the contract before a release is charged.",
)
def columns_unusable(source: str, columns: tuple[str, ...]) -> None:
    """Every cell of these columns is missing, unreadable, out of bounds or not a declared level.

    Only 'gramercy check' says so before a charge. A release never does: its refusal would reveal
    something about the cells.
    """


@problem(
    "GRM-743",
    RequestError,
    "'gramercy check' prints exact facts about private cells, so standard output and standard "
    "error must be terminals.",
    "Run it in a terminal, or pass --json if a program must read the result.",
)
def check_needs_terminal() -> None:
    """The output of a check has no privacy guarantee, so it does not go to files and logs."""


@problem(
    "GRM-746",
    TableError,
    "{file}: column '{column}' decides the period of each row, but has the type {type}.",
    "Store it as dates or times, or as text such as 2026-11-23.",
)
def date_column_type(file: str, column: str, type: str) -> None:
    """The period of a row follows from a date; with a budget per year it may be a whole number."""
