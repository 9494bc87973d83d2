"""The families of problems: each code is one that a user can look up and act on.

A problem is worded where it is raised, next to the rule that was broken:
``raise families.EXCEEDED("The budget of {dataset} is exceeded.", "Raise it.", dataset=name)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from gramercy.schemas import errors
from gramercy.schemas.problem import Family, Notice

# The command line.
USAGE = Family(
    "GRM-001",
    errors.RequestError,
    "An argument or an option is missing, unknown, malformed, or cannot be combined with "
    "another one.",
    "Run the command with --help: it lists what each option accepts.",
)
NOT_A_TERMINAL = Family(
    "GRM-004",
    errors.RequestError,
    "A command that asks a question, or prints private facts, does not run in a terminal.",
    "Run it in a terminal; or pass --yes to confirm, --json for a program.",
)
USELESS = Family(
    "GRM-044",
    errors.RequestError,
    "The plan is red, and the command runs in a script or a pipe, where no question can be asked.",
    "Change the request as the plan says, or pass --despite.",
)
NO_LEDGER = Family(
    "GRM-008",
    errors.RequestError,
    "The command needs a ledger, and this home does not have one.",
    "$GRAMERCY_HOME or $GRAMERCY_LEDGER_URL selects the ledger; the first release creates one.",
)
COMPARISON = Family(
    "GRM-012",
    errors.RequestError,
    "Two releases cannot be compared entry by entry: they are the same, or publish different "
    "matrices.",
    "Name two releases of one data set with the same columns, constants and normalisation; or "
    "compare them in Python.",
)
EXPORT = Family(
    "GRM-014",
    errors.RequestError,
    "An export lacks its format, its folder, or a fact that the registry requires.",
    "Name an empty folder for each format, and state the facts that no release records.",
)
OUTPUT = Family(
    "GRM-019",
    errors.RequestError,
    "What an option asks for cannot be written: the place exists, its folder does not, or the "
    "disk refuses.",
    "Name another file or folder, or make it writable.",
)
REPORTS = Family(
    "GRM-017",
    errors.RequestError,
    "Reports of the local mechanism cannot be made or averaged: not sealed, made otherwise, or "
    "not the number of rows.",
    "Make them with 'gramercy randomize' from one request, and name every folder 'release' once.",
)
DRAFT = Family(
    "GRM-024",
    errors.RequestError,
    "A contract cannot be drafted from this table, or an answer is not one that the contract "
    "can have.",
    "Answer as the message says, or name the columns with --columns.",
)
SERVER = Family(
    "GRM-035",
    errors.ServerError,
    "The Prefect server or its worker cannot be reached, refuses, or has ended.",
    "See serve/server.log in the home, PREFECT_API_URL and PREFECT_API_AUTH_STRING; what was "
    "charged is in 'gramercy history'.",
)
INTERRUPTED = Family(
    "GRM-046",
    errors.Interrupted,
    "The command was ended by Ctrl-C or a signal.",
    "The same command continues: a charge is never made twice.",
)
# This machine.
MISSING_PACKAGES = Family(
    "GRM-050",
    errors.MissingPackages,
    "A part of Gramercy was used whose packages are not installed.",
    "Install the extra that the message names.",
)
OPERATING_SYSTEM = Family(
    "GRM-051",
    errors.GramercyError,
    "The operating system refused to read or write a file.",
    "Check permissions, space and mounts.",
)
ARCHIVE_DISK = Family(
    "GRM-052",
    errors.ArchiveError,
    "The disk of the archive or the home cannot be read or written, or has too little space for "
    "a release.",
    "Free some space or make the folder accessible. Nothing was charged before the space was "
    "checked.",
)
LOCK = Family(
    "GRM-054",
    errors.LedgerError,
    "A lock, which keeps runs of a data set apart, is held by another process or cannot be made.",
    "Wait for the other run to end; check the folder and the database.",
)
SETTING = Family(
    "GRM-057",
    errors.RequestError,
    "An environment variable of Gramercy has a value that it cannot have.",
    "Write the value as the message says, or unset the variable.",
)
# Files and keys of contracts and requests.
CONTRACT_FILE = Family(
    "GRM-100",
    errors.ContractError,
    "A contract's file does not exist, is not a file, or is not valid.",
    "Correct the lines that the message names.",
)
REQUEST_FILE = Family(
    "GRM-101",
    errors.RequestError,
    "A request's file, or the contract that it names, does not exist, is not a file, or is not "
    "valid.",
    "Correct the lines that the message names; 'dataset' is a path or the id of a registered "
    "contract.",
)
MANIFEST = Family(
    "GRM-102",
    errors.BundleError,
    "A manifest of a bundle is not valid.",
    "Fetch the bundle again from its curator.",
)
YAML = Family(
    "GRM-704",
    errors.InvalidValue,
    "A YAML file cannot be read: its syntax, its size, or a value that no key can have.",
    "Correct the line that the message names.",
)
KEY = Family(
    "GRM-103",
    errors.InvalidValue,
    "A key is missing, unknown, empty, or has too many entries; or its value is not one of a list.",
    "Write the key as the message says; the reference lists all keys.",
)
VALUE = Family(
    "GRM-108",
    errors.InvalidValue,
    "The value of a key has the wrong type, is out of range, or is not written as it must be.",
    "Write the value as the message says.",
)
SETTINGS = Family(
    "GRM-120",
    errors.InvalidValue,
    "Settings of a mechanism or an estimator are not valid.",
    "Correct the settings that the message names.",
)
CONTRACT_USE = Family(
    "GRM-121",
    errors.ContractError,
    "A column of a valid contract cannot be used: its name is too long, hides characters or "
    "looks like another one, or its bounds enclose no range of whole numbers.",
    "Rename the column in the table or a view, or state wider bounds.",
)
# Contracts.
PERSONS = Family(
    "GRM-130",
    errors.InvalidValue,
    "The keys that protect persons contradict each other.",
    "State 'privacy_unit: COLUMN', 'persons' and a budget for the lifetime together.",
)
# Sources.
DELTA_TABLE = Family(
    "GRM-890",
    errors.TableError,
    "A Delta table cannot be read.",
    "Install gramercy[delta], or export the table to Parquet.",
)
# Contracts.
PERIODS = Family(
    "GRM-137",
    errors.InvalidValue,
    "The source, the budget per period and the date column do not fit together.",
    "State the period's placeholders in 'source', or 'period' with a date column under add-remove.",
)
COLUMNS = Family(
    "GRM-139",
    errors.InvalidValue,
    "Names and patterns in 'columns' and 'exclude' do not stand for one column each.",
    "Restate the names that the message lists.",
)
BOUNDS = Family(
    "GRM-143",
    errors.InvalidValue,
    "Bounds, centre and scale of a column contradict each other.",
    "State 'lower' below 'upper', and a centre between them.",
)
LEVELS = Family(
    "GRM-146",
    errors.InvalidValue,
    "The levels of a column are mixed, repeated, or read as missing.",
    "List each level once, all as text or all as numbers.",
)
# Requests.
VERSION = Family(
    "GRM-160",
    errors.InvalidValue,
    "A version has a directive that gives no label.",
    "Use %Y %m %d %G %V %H %M %j, or {period}.",
)
PERIOD = Family(
    "GRM-163",
    errors.RequestError,
    "A version or a period is not one of the data set's budget, or the same at every scheduled "
    "run.",
    'Write a version that starts with a period of the data, or "{period}".',
)
BUDGET_DELTA = Family(
    "GRM-162",
    errors.RequestError,
    "A delta is so large that a whole row could be published.",
    "Choose a delta below one over the number of rows.",
)
REQUEST_KEYS = Family(
    "GRM-164",
    errors.InvalidValue,
    "Keys of a request about mechanism, scaling and normalisation contradict each other.",
    "State one privacy level; with private scaling leave out the normalisation, with declared "
    "scaling state a radius for clip.",
)
SCALING = Family(
    "GRM-171",
    errors.RequestError,
    "Constants cannot be estimated or taken over for this request.",
    "Declare bounds and 'scaling: declared', or change the mechanism as the message says.",
)
GROUPS = Family(
    "GRM-177",
    errors.RequestError,
    "Rows cannot be grouped by this column in this request.",
    "Name a column of levels, with a Gaussian mechanism and not too many groups.",
)
REQUEST_USE = Family(
    "GRM-711",
    errors.RequestError,
    "Folds, engine, normalisation or the kind of source cannot be used with this mechanism, "
    "unit or number of rows.",
    "Leave the key out, choose a Gaussian mechanism, or export the table to Parquet.",
)
ESTIMATES = Family(
    "GRM-710",
    errors.RequestError,
    "The estimates of a request cannot be made from its release.",
    "Leave 'estimates' empty, or split them into several runs.",
)
# Tables.
SOURCE = Family(
    "GRM-200",
    errors.TableError,
    "The source of a table is missing, cannot be opened, or is of a kind that is not read.",
    "Name existing CSV or Parquet files, a database's table or a Delta table; 'gramercy "
    "convert' converts others.",
)
FILE = Family(
    "GRM-210",
    errors.TableError,
    "A file of the table cannot be read.",
    "Check permissions and the disk, or write the file again.",
)
HEADER = Family(
    "GRM-220",
    errors.TableError,
    "The header of a CSV file is not one line with the names of the columns.",
    "Correct the header, or state separator and encoding in 'source'.",
)
TABLE_COLUMNS = Family(
    "GRM-230",
    errors.TableError,
    "The columns of a file are not those of the contract: missing, repeated, or of another type.",
    "Correct the contract or the file; 'gramercy check' shows what a release could use.",
)
UNUSABLE_TABLE = Family(
    "GRM-742",
    errors.TableError,
    "A check found columns of the table without a single cell that a release could use.",
    "Correct the contract or the file before a release is charged.",
)
ROW_COUNT = Family(
    "GRM-240",
    errors.TableError,
    "Under replace-one the number of rows is public, and the table has another one.",
    "Correct 'rows', or choose 'neighbours: add-remove'.",
)
CHANGED = Family(
    "GRM-242",
    errors.TableError,
    "The table changed while it was read. Nothing was charged.",
    "Release again when no one writes to it.",
)
# Clusters.
DASK = Family(
    "GRM-260",
    errors.RequestError,
    "A Dask cluster is missing, unreachable, of another version, or could spill private data.",
    "Start the cluster as docs/cluster.md says; the operator sets DASK_SCHEDULER_ADDRESS.",
)
DASK_FAILED = Family(
    "GRM-267",
    errors.StepFailed,
    "A worker of the Dask cluster failed, or the cluster lost a result. Nothing was charged.",
    "Release again; the cluster's logs may say more.",
)
# The budget.
EXCEEDED = Family(
    "GRM-300",
    errors.BudgetRefused,
    "A release needs more than is left of the budget, or than a single release may have.",
    "Ask for a smaller epsilon; or raise the budget, which is recorded.",
)
SPENT = Family(
    "GRM-302",
    errors.SpentFailure,
    "A request was charged before, and its release was interrupted or withdrawn. A charge is "
    "never refunded.",
    "'gramercy release --new-charge' charges it again.",
)
TERMS = Family(
    "GRM-305",
    errors.TermsChanged,
    "The contract states other terms than those with which the data set was registered.",
    "Restore the terms that the message names, or use a new id.",
)
CHANGE = Family(
    "GRM-307",
    errors.RequestError,
    "A change of a budget lacks its reason, goes the wrong way, or is of an unknown data set.",
    "Give a one-line reason, and numbers that --raise or --lower may have.",
)
# The ledger.
LEDGER = Family(
    "GRM-330",
    errors.LedgerError,
    "The ledger cannot be used: its location, its driver, its schema, or its database.",
    "See the reason in the message; nothing was charged.",
)
UNTRUSTED = Family(
    "GRM-338",
    errors.UntrustedLedger,
    "The ledger was copied, restored, cut short or changed: charges may be missing from it.",
    "Find the newest ledger; docs/ledger.md says what to do in each case.",
)
ENTRY = Family(
    "GRM-345",
    Notice,
    "An audit found an entry of the ledger that contradicts the others or its anchors.",
    "Find out who can write to the database; restore it from a backup.",
)
# The archive.
UNKNOWN_RELEASE = Family(
    "GRM-400",
    errors.UnknownRelease,
    "The archive does not have such a release or data set.",
    "'gramercy list' lists what it has.",
)
NOT_AN_ARCHIVE = Family(
    "GRM-404",
    errors.RequestError,
    "An address is not that of an archive, or has parts that it must not have.",
    "Name the folder or the URL that has listing.json.",
)
DRIVER = Family(
    "GRM-410",
    errors.RequestError,
    "The driver for a kind of URL is missing, unknown or failed.",
    "Install the package that the message names.",
)
STORE = Family(
    "GRM-403",
    errors.ArchiveError,
    "A place of the archive cannot be read or written as it must be.",
    "Check the store, its permissions and who else writes to it.",
)
FILE_TOO_LARGE = Family(
    "GRM-489",
    errors.ArchiveError,
    "A file of an archive at a URL is larger than Gramercy writes it.",
    "Ask the curator: it is not a file of Gramercy.",
)
EXISTS = Family(
    "GRM-418",
    errors.ArchiveError,
    "Another bundle is at the place of the one that is published.",
    "Wait for the other run, or find out who wrote it.",
)
ANCHOR = Family(
    "GRM-421",
    errors.BundleError,
    "Anchors of the ledger in the archive contradict each other, their names or the trusted keys.",
    "Find out who can write to the archive; restore the anchors from a copy.",
)
# Bundles.
INCOMPLETE_FACTS = Family(
    "GRM-430",
    errors.InvalidValue,
    "Facts of a manifest contradict each other.",
    "Fetch the bundle again from its curator.",
)
SEAL = Family(
    "GRM-432",
    errors.BundleError,
    "A sealed bundle has missing, changed, added or unreadable files.",
    "Fetch it again from its curator, and check who can write to the archive.",
)
SIGNER = Family(
    "GRM-441",
    errors.BundleError,
    "A bundle is signed by a key that is not trusted.",
    "Get the curator's public key, and name it with --key.",
)
DESCRIPTION = Family(
    "GRM-442",
    errors.BundleError,
    "The description of a bundle is not one, contradicts its manifest, or has active content.",
    "Fetch the bundle again from its curator.",
)
CONTENT = Family(
    "GRM-447",
    errors.BundleError,
    "A file of a bundle does not have the content that its manifest describes.",
    "Fetch the bundle again from its curator.",
)
KEY_FILE = Family(
    "GRM-452",
    errors.RequestError,
    "A file of a public key is missing or is not one.",
    "Name the curator's file, which 'gramercy keys' shows.",
)
PRIVATE_KEY = Family(
    "GRM-453",
    errors.ArchiveError,
    "The private key of this home is missing, malformed or readable by others.",
    "Restore it, or create another with 'gramercy keys new'.",
)
# The listing.
LISTING = Family(
    "GRM-481",
    errors.BundleError,
    "The signed listing of the archive is missing, damaged or older than its bundles, or pages "
    "differ from it.",
    "If no command was interrupted, find out who can write to the archive; 'gramercy site' "
    "writes it again.",
)
# Mechanisms.
UNSUPPORTED = Family(
    "GRM-500",
    errors.RequestError,
    "A mechanism has no guarantee for this neighbour relation or unit of privacy, or no "
    "published calibration.",
    "'gramercy plan --compare' lists those that have one.",
)
ARITHMETIC = Family(
    "GRM-504",
    errors.RequestError,
    "The noise of a mechanism is exact or in floating point, and the request or the contract "
    "says otherwise.",
    "Write 'arithmetic: floating-point' where the message says, to accept weaker noise.",
)
NOISE_RANGE = Family(
    "GRM-506",
    errors.RequestError,
    "The noise of a request is too small, too large or too long to be drawn exactly.",
    "Change the epsilon, the number of columns or the mechanism.",
)
SAMPLER = Family(
    "GRM-520",
    errors.SamplerError,
    "The sampler of noise fails its own test, so no noise is drawn.",
    "Report it: this is a fault of the installation or of Gramercy.",
)
ARGUMENT = Family(
    "GRM-530",
    errors.InvalidValue,
    "An argument of a mechanism is out of its range.",
    "Pass a value that the message allows.",
)
GUARANTEE = Family(
    "GRM-717",
    errors.GuaranteeRefused,
    "The exact guarantee of the noise is weaker than requested.",
    "Ask for what the message states, or choose another mechanism.",
)
# Analyses.
FORMULA = Family(
    "GRM-550",
    errors.InvalidValue,
    "A formula of a regression cannot be used with a second moment.",
    "Write 'outcome ~ a + b' with columns of the release.",
)
ANALYSIS = Family(
    "GRM-555",
    errors.RequestError,
    "The release does not have what the analysis needs: columns, levels, means or a matrix.",
    "Name what the release has; release.columns and its report show it.",
)
POOL = Family(
    "GRM-580",
    errors.RequestError,
    "Releases cannot be pooled: other columns, constants, units or rows.",
    "Pool releases of one data set with the same constants.",
)
UNKNOWN_NAME = Family(
    "GRM-590",
    errors.UnknownName,
    "The release has no estimate, matrix, group, column or period of this name.",
    "The message lists the most similar names.",
)
# Estimates.
MATRIX = Family(
    "GRM-600",
    errors.InvalidValue,
    "A matrix or an array does not have the shape or the values that an estimator needs.",
    "Pass a matrix as the message describes.",
)
ESTIMATOR_SETTING = Family(
    "GRM-614",
    errors.InvalidValue,
    "A setting of an estimator is not one that it can have.",
    "Choose a value that the message allows.",
)
ESTIMATE = Family(
    "GRM-619",
    errors.RequestError,
    "An estimate cannot be made from this release.",
    "Choose an estimator or settings that suit what the release has.",
)
NO_MINIMISER = Family(
    "GRM-630",
    errors.NoMinimiser,
    "The graphical lasso has no solution at this penalty: the matrix is too far from positive "
    "definite.",
    "Choose a larger penalty, or the denoised matrix.",
)
NOT_CONVERGED = Family(
    "GRM-634",
    errors.RequestError,
    "A solver did not reach its accuracy: the problem is nearly singular.",
    "Choose a larger penalty.",
)
NOT_CERTIFIED = Family(
    "GRM-637",
    errors.StepFailed,
    "A solution could not be certified, so it was not published. The charge is spent.",
    "Choose a larger penalty for another release.",
)
# Publication.
LATE_RUN = Family(
    "GRM-719",
    errors.LateRun,
    "A scheduled run is so late that today's table would get the label of another day.",
    "Run the deployment again for the present version.",
)
INTERNAL = Family(
    "GRM-723",
    errors.StepFailed,
    "A step of a release failed before it was published.",
    "See the reason; the ledger says what was charged.",
)
# Prefect.
STEP_FAILED = Family(
    "GRM-750",
    errors.StepFailed,
    "A step of a flow raised an unexpected exception, of which only the type is reported.",
    "Run the same step on a table without private values.",
)
ESTIMATES_FAILED = Family(
    "GRM-751",
    errors.RequestError,
    "Some of the requested estimates could not be made; the others were sealed.",
    "The message repeats the error of each, with its code.",
)
DISCREPANCIES = Family(
    "GRM-752",
    errors.Discrepancies,
    "An audit found records that contradict each other.",
    "Its page lists them, each with a remedy.",
)
DEPLOYMENT = Family(
    "GRM-758",
    errors.RequestError,
    "A deployment cannot be made or run: its name, its flow or its parameters.",
    "Deploy as prefect.yaml does, in a work pool of this home.",
)
NOT_REGISTERED = Family(
    "GRM-762",
    errors.RequestError,
    "A run that Prefect starts, or a schedule, names a contract that is not registered as it is "
    "now.",
    "Run 'gramercy register CONTRACT' in the home of the worker.",
)
NO_LOGIN = Family(
    "GRM-768",
    Notice,
    "A Prefect server answers without a login.",
    "Set PREFECT_SERVER_API_AUTH_STRING for that server.",
)
# Verification and audits.
CONTRADICTION = Family(
    "GRM-802",
    errors.BundleError,
    "What a bundle states does not follow from its files: it was changed and sealed again.",
    "Ask its curator; compare the ledger.",
)
REPLACED = Family(
    "GRM-811",
    errors.BundleError,
    "A bundle that this one needs, or that the ledger has recorded, is missing or was replaced.",
    "Restore it from a copy; the ledger has its digest.",
)
CHARGE = Family(
    "GRM-812",
    errors.BundleError,
    "A release was not charged as it states.",
    "Ask its curator: the guarantee may be weaker than stated.",
)
STATE = Family(
    "GRM-814",
    errors.Invalid,
    "The archive and the ledger disagree about the state of a release.",
    "Restore what is missing; docs/ledger.md lists each case.",
)
UNKNOWN_BUNDLE = Family(
    "GRM-819",
    Notice,
    "The archive or the run history has what the ledger does not know.",
    "Find out who wrote it.",
)
NOT_CHECKED = Family(
    "GRM-818",
    Notice,
    "Something could not be checked, for lack of a key, a ledger, packages or other releases.",
    "Give what the message names, and verify again.",
)
NOT_RECORDED = Family(
    "GRM-844",
    Notice,
    "The archive has estimates or reports that the ledger does not know.",
    "They may be of an interrupted command; estimate again.",
)
RECORDED = Family(
    "GRM-831",
    Notice,
    "What an auditor should know: changes of budgets, moves of the ledger, shared tables, "
    "deleted run history.",
    "Ask the steward for the reason, if the message does not have one.",
)
# Sources.
DATABASE = Family(
    "GRM-850",
    errors.InvalidValue,
    "The keys of a source contradict each other.",
    "State one of 'table', 'view' and 'query', and a URL without secrets.",
)
WHERE = Family(
    "GRM-861",
    errors.InvalidValue,
    "'where' is not a condition on the cells of one row.",
    "Compare columns with constants, joined by AND, OR and NOT.",
)
DATABASE_READ = Family(
    "GRM-865",
    errors.TableError,
    "A database, or the table in it, cannot be read as the contract says.",
    "Check the URL, the driver, permissions and names.",
)
COPY = Family(
    "GRM-872",
    errors.ContractError,
    "The private copy of a table cannot be written.",
    "Free some space, or make the home writable.",
)
# Warnings.
LATER_STEP = Family(
    "GRM-900",
    Notice,
    "The main result is complete, and a later step failed.",
    "Run the command again: nothing is charged twice.",
)
WITHDRAWN = Family(
    "GRM-902",
    Notice,
    "A release was withdrawn by its curator.",
    "Do not use it; the notice says why.",
)
VERSION_NOT_FINAL = Family(
    "GRM-905",
    Notice,
    "A period is published before it is over, or the table has changed since its version was.",
    "Wait for the end of the period; choose a new version to publish the changed table.",
)
PERSON_IDS = Family(
    "GRM-911",
    Notice,
    "The number of persons differs from the contract's, or ids look alike.",
    "Write every id in one way, and correct 'persons'.",
)
REPAIRED_CELLS = Family(
    "GRM-912",
    Notice,
    "Cells were missing, invalid or out of bounds, and were repaired.",
    "Correct the table, the bounds, the levels or the codes of missing values.",
)
MANY_CELLS = Family(
    "GRM-933",
    Notice,
    "Many cells of a column are missing, unreadable, not a declared level or out of bounds.",
    "Look at the contract first: levels, bounds, codes of missing values; then at the table.",
)
UNUSABLE_COLUMNS = Family(
    "GRM-931",
    Notice,
    "No cell of a column could be used.",
    "Correct the contract: kinds, levels, names.",
)
LEVELS_WITHOUT_CELLS = Family(
    "GRM-936",
    Notice,
    "No cell of the table has one of the declared levels.",
    "Correct the levels; one that cannot occur only adds noise.",
)
NOTHING_USED = Family(
    "GRM-930",
    Notice,
    "Not one cell of the table could be used: the release contains noise only.",
    "Withdraw it, correct the contract, and publish a new version.",
)
UNUSABLE_LINES = Family(
    "GRM-914",
    Notice,
    "Lines are not rows, or have no readable date.",
    "Write the file again, and look at 'gramercy check'.",
)
PRIVATE = Family(
    "GRM-937",
    Notice,
    "Exact facts about private cells are shown to the steward.",
    "Never publish them.",
)
PROTECTION = Family(
    "GRM-920",
    Notice,
    "The guarantee of a release is weak.",
    "Ask for a smaller epsilon.",
)
NOISE = Family(
    "GRM-921",
    Notice,
    "The noise, or the small number of rows, hides much of what is published.",
    "Ask for a larger epsilon, fewer columns or more rows.",
)
TAILS = Family(
    "GRM-928",
    Notice,
    "Columns have long tails or cells at their bounds.",
    "Take logarithms, or state wider bounds.",
)
READING = Family(
    "GRM-944",
    Notice,
    "Correlations are not about the means, or are associations of directions.",
    "Use an intercept and 'normalisation: clip'.",
)


@cache
def catalogue() -> Mapping[str, Family[Any]]:
    """Every family by its code, in order of codes."""
    found = [each for each in globals().values() if isinstance(each, Family)]
    return MappingProxyType({each.code: each for each in sorted(found, key=lambda x: x.code)})
