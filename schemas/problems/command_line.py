"""Commands, options and answers: codes 001 to 049."""

from __future__ import annotations

from gramercy.schemas.errors import Interrupted, RequestError, ServerError
from gramercy.schemas.problem import problem


@problem("GRM-001", RequestError, "Usage error: {reason}", "Run '{command} --help'.")
def usage(reason: str, command: str) -> None:
    """A command, an argument or an option is missing, unknown or malformed."""


@problem(
    "GRM-002",
    RequestError,
    "'{code}' is not a Gramercy code.",
    "'gramercy explain' lists all codes.",
)
def unknown_code(code: str) -> None:
    """`gramercy explain` was given a code that no version of Gramercy has used."""


@problem("GRM-003", RequestError, "An argument is not UTF-8 text.", "Type it again.")
def argument_not_text() -> None:
    """An argument has bytes that can be neither printed nor stored."""


@problem("GRM-004", RequestError, "Not a terminal, so no question can be asked.", "{remedy}")
def not_a_terminal(remedy: str) -> None:
    """A command that asks for confirmation runs in a script or a pipe."""


@problem(
    "GRM-044",
    RequestError,
    "{reason}",
    "Change the request; or pass --despite to publish it all the same.",
)
def useless_release(reason: str) -> None:
    """The plan is red, and the command runs in a script or a pipe, where no question can be asked.

    `--yes` does not answer this question. A flow that Prefect runs on a schedule does not ask: its
    request was planned by a steward.
    """


# Options and arguments.


@problem(
    "GRM-005",
    RequestError,
    "These options cannot be combined: {options}.",
    "Run the command once for each option.",
)
def conflicting_options(options: tuple[str, ...]) -> None:
    """Two options of one command ask for different actions."""


@problem("GRM-006", RequestError, "{option} must be one of: {choices}.", "'{value}' is not.")
def not_a_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """An option that accepts only certain words was given another one."""


@problem("GRM-007", RequestError, "{option} needs a data set.", "Name it before the option.")
def dataset_missing(option: str) -> None:
    """A budget can only be changed for one named data set."""


@problem(
    "GRM-008",
    RequestError,
    "No data set '{dataset}': this home has no ledger.",
    "The first release creates one; $GRAMERCY_HOME or $GRAMERCY_LEDGER_URL selects another.",
)
def no_ledger(dataset: str) -> None:
    """The command needs the ledger of a home from which nothing was ever published."""


@problem(
    "GRM-009", RequestError, "--port must be between 1 and 65535.", "Choose another, such as 4200."
)
def port_out_of_range(port: int) -> None:
    """The port for the Prefect server is not a TCP port."""


@problem(
    "GRM-010", RequestError, "--set: '{setting}' is not of the form KEY=VALUE.", "Write key=value."
)
def setting_malformed(setting: str) -> None:
    """A setting of an estimator lacks its name, the equals sign or its value."""


@problem("GRM-011", RequestError, "--set: '{setting}' is given twice.", "Give it once.")
def setting_repeated(setting: str) -> None:
    """A setting of an estimator has two values; --penalty counts as the setting 'penalty'."""


# Comparing and exporting releases.


@problem(
    "GRM-012", RequestError, "'{release}' cannot be compared with itself.", "Name two releases."
)
def same_release(release: str) -> None:
    """`gramercy compare` was given one release twice."""


@problem(
    "GRM-013",
    RequestError,
    "'{earlier}' and '{later}' are not estimates of the same matrix.",
    "Compare releases of the same data set, columns, normalisation and penalty. Releases with "
    "private constants have the same ones if a request takes them from the other release: "
    "'scaling: {{from: RELEASE}}'. In Python, release.compare(other) compares means, standard "
    "deviations and correlations, also of releases with different constants.",
)
def not_comparable(earlier: str, later: str) -> None:
    """Two releases differ in what they publish, so their difference has no meaning."""


@problem(
    "GRM-014", RequestError, "Nothing to export.", "Add --registry FOLDER or --package FOLDER."
)
def nothing_to_export() -> None:
    """`gramercy export` was given no format to write."""


@problem(
    "GRM-015",
    RequestError,
    "--registry and --package must be different folders, neither inside the other.",
    "Choose two folders.",
)
def overlapping_folders() -> None:
    """A data package describes every file in its folder, so nothing else may be written there."""


@problem("GRM-016", RequestError, "--registry requires {option}.", "State {meaning}.")
def registry_fact_missing(option: str, meaning: str) -> None:
    """The OpenDP Deployments Registry requires a fact that no release records."""


@problem(
    "GRM-017",
    RequestError,
    "{request} asks for the mechanism '{mechanism}'; 'gramercy randomize' is for 'local' only.",
    "Write 'name: local' in the request, or use 'gramercy release'.",
)
def not_the_local_mechanism(request: str, mechanism: str) -> None:
    """Only the mechanism 'local' makes a noisy report of every row at its source."""


@problem(
    "GRM-018",
    RequestError,
    "{path} is not a sealed release.",
    "Name the folder 'release' in the output of 'gramercy randomize'.",
)
def not_a_sealed_release(path: str) -> None:
    """A folder that was passed to `gramercy aggregate` has no list of checksums."""


# Files and folders that an option names.


@problem(
    "GRM-019",
    RequestError,
    "{option}: {path} exists and is not a file.",
    "Choose another file name.",
)
def not_a_file(option: str, path: str) -> None:
    """A file cannot be written because something else, such as a folder, has its name."""


@problem(
    "GRM-020",
    RequestError,
    "{option}: the folder of {path} does not exist.",
    "Create it, or choose another file name.",
)
def parent_folder_missing(option: str, path: str) -> None:
    """A file cannot be written because its folder does not exist."""


@problem(
    "GRM-021",
    RequestError,
    "{option}: {path} exists and is not a folder.",
    "Choose another folder.",
)
def not_a_folder(option: str, path: str) -> None:
    """A folder cannot be created because a file has its name, or the name of a parent folder."""


@problem(
    "GRM-022",
    RequestError,
    "{option}: {path} cannot be written ({reason}).",
    "Free some space, or choose another location.",
)
def cannot_write(option: str, path: str, reason: str) -> None:
    """The operating system refused to write what an option asked for."""


@problem(
    "GRM-023", RequestError, "--package: {path} is not an empty folder.", "Choose a new folder."
)
def package_folder_not_empty(path: str) -> None:
    """A data package describes every file in its folder, so it is written to an empty one."""


# Drafting a contract with `gramercy new`.


@problem(
    "GRM-024",
    RequestError,
    "TABLE must not contain a user, a password or a query: the contract is public.",
    "Write {url}; put credentials into the environment variables or configuration files of its "
    "driver.",
)
def table_url_has_secrets(url: str) -> None:
    """The URL of a table would publish credentials with the contract."""


@problem("GRM-025", RequestError, "TABLE must not be empty.", "Name the table's file or folder.")
def table_missing() -> None:
    """`gramercy new` was given an empty name of a table."""


@problem(
    "GRM-026",
    RequestError,
    "--columns: {table} does not have a column '{column}'.",
    "Spell it as its header or schema does; put a name with a comma in double quotes.",
)
def column_not_in_table(column: str, table: str) -> None:
    """A column that was chosen to be published is not in the table's header or schema."""


@problem(
    "GRM-027",
    RequestError,
    "{table} does not have a column that can be published.",
    "Store numbers or text in columns with printable names.",
)
def no_publishable_column(table: str) -> None:
    """Every column has an unusable name or holds neither numbers nor text."""


@problem(
    "GRM-028",
    RequestError,
    "{table} has {count} columns, and a matrix may have at most {most}.",
    "Choose the columns to publish with --columns.",
)
def too_many_columns(table: str, count: int, most: int) -> None:
    """A draft of every column would not be a valid contract."""


@problem("GRM-029", RequestError, "--columns has an empty name.", "Write --columns A,B.")
def empty_column_name() -> None:
    """The list of columns is empty, has two commas in a row, or starts or ends with a comma."""


@problem(
    "GRM-030",
    RequestError,
    "{folder} is the table's own folder.",
    "Choose another one with --folder.",
)
def folder_is_table(folder: str) -> None:
    """A contract in the table's folder would be read as part of the table."""


@problem(
    "GRM-031",
    RequestError,
    "{path} already exists.",
    "Move it, or choose another folder with --folder.",
)
def draft_exists(path: str) -> None:
    """`gramercy new` never overwrites a contract or a request."""


@problem(
    "GRM-032",
    RequestError,
    "The first line of {table} may be a row instead of column names: it has a number, a date, a "
    "time or a mark for a missing value.",
    "Add a first line with names; or, if these are names, list them with --columns.",
)
def header_looks_like_data(table: str) -> None:
    """Column names go into the public contract, so a first line that may be private is refused."""


@problem(
    "GRM-033",
    RequestError,
    "No other column is left to publish.",
    "Answer 'none' to protect rows instead of persons.",
)
def only_person_column() -> None:
    """The only column of the table was chosen as the one that identifies persons."""


@problem(
    "GRM-034", RequestError, "No column was chosen.", "Give at least one column bounds or levels."
)
def no_column_chosen() -> None:
    """Every column was skipped, so the contract would not have any."""


# Running Prefect.


@problem(
    "GRM-035",
    ServerError,
    "The Prefect server at PREFECT_API_URL ({url}) does not answer.",
    "Start it, or unset PREFECT_API_URL.",
)
def server_not_answering(url: str) -> None:
    """The environment names a Prefect server that cannot be reached."""


@problem(
    "GRM-036",
    ServerError,
    "Port {port} is already in use.",
    "Choose another --port; or, to use the Prefect server there, set PREFECT_API_URL={url}.",
)
def port_in_use(port: int, url: str) -> None:
    """A Prefect server already runs on this port."""


@problem("GRM-037", ServerError, "The Prefect server did not start on port {port}.", "See {log}.")
def server_not_started(port: int, log: str) -> None:
    """The Prefect server ended, or did not answer within three minutes."""


@problem(
    "GRM-038",
    ServerError,
    "The Prefect server or the worker stopped.",
    "The last lines of its output show why.",
)
def serving_stopped() -> None:
    """A process that `gramercy serve` started has ended."""


@problem(
    "GRM-039",
    ServerError,
    "Prefect could not run the flow ({reason}).",
    "Run the same command again: it shows what became of the release. If PREFECT_API_URL is set, "
    "check that the server answers.",
)
def flow_not_run(reason: str) -> None:
    """An error came from Prefect itself and not from a step of the flow."""


# Answers to questions; each question is asked again.


@problem(
    "GRM-040",
    RequestError,
    "The answer must be a finite number.",
    "Write one, with a decimal point: 0.5.",
)
def answer_not_a_number() -> None:
    """A question of `gramercy new` expects a finite number."""


@problem("GRM-041", RequestError, "The answer must be {least} or more.", "Write a larger number.")
def answer_too_small(least: int) -> None:
    """A number of rows or persons is too small; there are at least as many rows as persons."""


@problem(
    "GRM-042", RequestError, "The answer must be one of: {choices}.", "The first letter is enough."
)
def answer_not_a_choice(choices: tuple[str, ...]) -> None:
    """A question of `gramercy new` expects one of a few words."""


@problem(
    "GRM-043",
    RequestError,
    "'{answer}' is not a column that can be published. Columns, most similar first: {known}.",
    "Spell it as the table does, or press Enter.",
)
def answer_not_a_column(answer: str, known: tuple[str, ...]) -> None:
    """A question of `gramercy new` expects the name of a column."""


@problem(
    "GRM-045",
    RequestError,
    "The answer must be two numbers, the lower and the upper bound.",
    "Write them such as 0 100.5, with a decimal point, or press Enter for a column without bounds.",
)
def answer_not_bounds() -> None:
    """A question of `gramercy new` expects both bounds of a column, or none."""


@problem(
    "GRM-046",
    Interrupted,
    "The command was interrupted. {outcome}",
    "Run the same command again to complete it.",
)
def interrupted(outcome: str) -> None:
    """Ctrl-C while a flow was running."""
