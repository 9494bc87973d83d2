"""The families of problems: each code is one that a user can look up and act on.

A problem is worded where it is raised, next to the rule that was broken:
``raise families.EXCEEDED("The budget of {dataset} is exceeded.", "Raise it.", dataset=name)``.
`error_codes.toml` has the cause and the remedy of every code.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from gramercy.schemas import errors
from gramercy.schemas.problem import Family, Notice

# The command line.
USAGE = Family("GRM-001", errors.RequestError)
NOT_A_TERMINAL = Family("GRM-004", errors.RequestError)
USELESS = Family("GRM-044", errors.RequestError)
NO_LEDGER = Family("GRM-008", errors.RequestError)
COMPARISON = Family("GRM-012", errors.RequestError)
EXPORT = Family("GRM-014", errors.RequestError)
OUTPUT = Family("GRM-019", errors.RequestError)
REPORTS = Family("GRM-017", errors.RequestError)
DRAFT = Family("GRM-024", errors.RequestError)
SERVER = Family("GRM-035", errors.ServerError)
INTERRUPTED = Family("GRM-046", errors.Interrupted)
# This machine.
MISSING_PACKAGES = Family("GRM-050", errors.MissingPackages)
OPERATING_SYSTEM = Family("GRM-051", errors.GramercyError)
ARCHIVE_DISK = Family("GRM-052", errors.ArchiveError)
LOCK = Family("GRM-054", errors.LedgerError)
SETTING = Family("GRM-057", errors.RequestError)
# Files and keys of contracts and requests.
CONTRACT_FILE = Family("GRM-100", errors.ContractError)
REQUEST_FILE = Family("GRM-101", errors.RequestError)
MANIFEST = Family("GRM-102", errors.BundleError)
YAML = Family("GRM-704", errors.InvalidValue)
KEY = Family("GRM-103", errors.InvalidValue)
VALUE = Family("GRM-108", errors.InvalidValue)
SETTINGS = Family("GRM-120", errors.InvalidValue)
CONTRACT_USE = Family("GRM-121", errors.ContractError)
# Contracts.
PERSONS = Family("GRM-130", errors.InvalidValue)
PERIODS = Family("GRM-137", errors.InvalidValue)
COLUMNS = Family("GRM-139", errors.InvalidValue)
BOUNDS = Family("GRM-143", errors.InvalidValue)
LEVELS = Family("GRM-146", errors.InvalidValue)
# Sources.
DELTA_TABLE = Family("GRM-890", errors.TableError)
DATABASE = Family("GRM-850", errors.InvalidValue)
WHERE = Family("GRM-861", errors.InvalidValue)
DATABASE_READ = Family("GRM-865", errors.TableError)
COPY = Family("GRM-872", errors.ContractError)
# Requests.
VERSION = Family("GRM-160", errors.InvalidValue)
PERIOD = Family("GRM-163", errors.RequestError)
BUDGET_DELTA = Family("GRM-162", errors.RequestError)
REQUEST_KEYS = Family("GRM-164", errors.InvalidValue)
SCALING = Family("GRM-171", errors.RequestError)
GROUPS = Family("GRM-177", errors.RequestError)
REQUEST_USE = Family("GRM-711", errors.RequestError)
ESTIMATES = Family("GRM-710", errors.RequestError)
# Tables.
SOURCE = Family("GRM-200", errors.TableError)
FILE = Family("GRM-210", errors.TableError)
HEADER = Family("GRM-220", errors.TableError)
TABLE_COLUMNS = Family("GRM-230", errors.TableError)
UNUSABLE_TABLE = Family("GRM-742", errors.TableError)
ROW_COUNT = Family("GRM-240", errors.TableError)
CHANGED = Family("GRM-242", errors.TableError)
# Clusters.
DASK = Family("GRM-260", errors.RequestError)
DASK_FAILED = Family("GRM-267", errors.StepFailed)
# The budget.
EXCEEDED = Family("GRM-300", errors.BudgetRefused)
SPENT = Family("GRM-302", errors.SpentFailure)
TERMS = Family("GRM-305", errors.TermsChanged)
CHANGE = Family("GRM-307", errors.RequestError)
# The ledger.
LEDGER = Family("GRM-330", errors.LedgerError)
UNTRUSTED = Family("GRM-338", errors.UntrustedLedger)
ENTRY = Family("GRM-345", Notice)
# The archive.
UNKNOWN_RELEASE = Family("GRM-400", errors.UnknownRelease)
NOT_AN_ARCHIVE = Family("GRM-404", errors.RequestError)
DRIVER = Family("GRM-410", errors.RequestError)
STORE = Family("GRM-403", errors.ArchiveError)
FILE_TOO_LARGE = Family("GRM-489", errors.ArchiveError)
EXISTS = Family("GRM-418", errors.ArchiveError)
ANCHOR = Family("GRM-421", errors.BundleError)
# Bundles.
INCOMPLETE_FACTS = Family("GRM-430", errors.InvalidValue)
SEAL = Family("GRM-432", errors.BundleError)
SIGNER = Family("GRM-441", errors.BundleError)
DESCRIPTION = Family("GRM-442", errors.BundleError)
CONTENT = Family("GRM-447", errors.BundleError)
KEY_FILE = Family("GRM-452", errors.RequestError)
PRIVATE_KEY = Family("GRM-453", errors.ArchiveError)
# The listing.
LISTING = Family("GRM-481", errors.BundleError)
# Mechanisms.
UNSUPPORTED = Family("GRM-500", errors.RequestError)
ARITHMETIC = Family("GRM-504", errors.RequestError)
NOISE_RANGE = Family("GRM-506", errors.RequestError)
SAMPLER = Family("GRM-520", errors.SamplerError)
ARGUMENT = Family("GRM-530", errors.InvalidValue)
GUARANTEE = Family("GRM-717", errors.GuaranteeRefused)
# Analyses.
FORMULA = Family("GRM-550", errors.InvalidValue)
ANALYSIS = Family("GRM-555", errors.RequestError)
POOL = Family("GRM-580", errors.RequestError)
UNKNOWN_NAME = Family("GRM-590", errors.UnknownName)
# Estimates.
MATRIX = Family("GRM-600", errors.InvalidValue)
ESTIMATOR_SETTING = Family("GRM-614", errors.InvalidValue)
ESTIMATE = Family("GRM-619", errors.RequestError)
NO_MINIMISER = Family("GRM-630", errors.NoMinimiser)
NOT_CONVERGED = Family("GRM-634", errors.RequestError)
NOT_CERTIFIED = Family("GRM-637", errors.StepFailed)
# Publication.
LATE_RUN = Family("GRM-719", errors.LateRun)
INTERNAL = Family("GRM-723", errors.StepFailed)
# Prefect.
STEP_FAILED = Family("GRM-750", errors.StepFailed)
ESTIMATES_FAILED = Family("GRM-751", errors.RequestError)
DISCREPANCIES = Family("GRM-752", errors.Discrepancies)
DEPLOYMENT = Family("GRM-758", errors.RequestError)
NOT_REGISTERED = Family("GRM-762", errors.RequestError)
NO_LOGIN = Family("GRM-768", Notice)
# Verification and audits.
CONTRADICTION = Family("GRM-802", errors.BundleError)
REPLACED = Family("GRM-811", errors.BundleError)
CHARGE = Family("GRM-812", errors.BundleError)
STATE = Family("GRM-814", errors.Invalid)
UNKNOWN_BUNDLE = Family("GRM-819", Notice)
NOT_CHECKED = Family("GRM-818", Notice)
NOT_RECORDED = Family("GRM-844", Notice)
RECORDED = Family("GRM-831", Notice)
# Warnings.
LATER_STEP = Family("GRM-900", Notice)
WITHDRAWN = Family("GRM-902", Notice)
VERSION_NOT_FINAL = Family("GRM-905", Notice)
PERSON_IDS = Family("GRM-911", Notice)
REPAIRED_CELLS = Family("GRM-912", Notice)
MANY_CELLS = Family("GRM-933", Notice)
UNUSABLE_COLUMNS = Family("GRM-931", Notice)
LEVELS_WITHOUT_CELLS = Family("GRM-936", Notice)
NOTHING_USED = Family("GRM-930", Notice)
UNUSABLE_LINES = Family("GRM-914", Notice)
PRIVATE = Family("GRM-937", Notice)
PROTECTION = Family("GRM-920", Notice)
NOISE = Family("GRM-921", Notice)
TAILS = Family("GRM-928", Notice)
READING = Family("GRM-944", Notice)


@cache
def catalogue() -> Mapping[str, Family[Any]]:
    """Every family by its code, in order of codes."""
    found = [each for each in globals().values() if isinstance(each, Family)]
    return MappingProxyType({each.code: each for each in sorted(found, key=lambda x: x.code)})
