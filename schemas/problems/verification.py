"""Verifying and auditing: codes 800 to 849."""

from __future__ import annotations

from gramercy.schemas.errors import BundleError, Invalid, RequestError, UnknownRelease
from gramercy.schemas.problem import Notice, problem

_ASK = "Ask the curator for the bundle that was published."

# What to verify.


@problem(
    "GRM-800",
    UnknownRelease,
    "{archive}: no release or data set is named '{name}'.",
    "Names, most similar first: {known}.",
)
def unknown_name(archive: str, name: str, known: tuple[str, ...]) -> None:
    """Neither the archive nor the ledger has the name that should be listed or verified."""


@problem(
    "GRM-801",
    RequestError,
    "{path}: the ledger does not exist.",
    "Set GRAMERCY_HOME or GRAMERCY_LEDGER_URL to its location.",
)
def no_ledger(path: str) -> None:
    """An audit needs the ledger, and this home does not have one."""


# A bundle that contradicts itself.


@problem(
    "GRM-802",
    BundleError,
    "{path}: '{key}' does not follow from the rest of the file. Stated: {stated}. Recomputed: "
    "{recomputed}.",
    _ASK,
)
def fact_contradicts(
    path: str, key: str, stated: tuple[str, ...], recomputed: tuple[str, ...]
) -> None:
    """A stated fact, such as the guarantee, differs from what is recomputed from the others."""


@problem("GRM-803", BundleError, "{path} does not follow from {source}.", _ASK)
def file_contradicts(path: str, source: str) -> None:
    """The content of a file differs from what is recomputed from other files of the archive."""


@problem("GRM-804", BundleError, "{path} is not listed in datapackage.json.", _ASK)
def file_not_listed(path: str) -> None:
    """A bundle contains a file that its description does not mention."""


@problem(
    "GRM-805",
    BundleError,
    "{path} describes {described}, and is in the folder of another one.",
    "Restore the folders as they were published: bundles were moved or swapped.",
)
def folder_mismatch(path: str, described: str) -> None:
    """The description names another data set, release, estimate or report than its folder does."""


@problem("GRM-806", BundleError, "{path} describes an impossible release ({reason}).", _ASK)
def bundle_malformed(path: str, reason: str) -> None:
    """The description combines facts from which no release can be recomputed."""


@problem("GRM-807", BundleError, "{path}: the entries are not on the stated lattice.", _ASK)
def off_lattice(path: str) -> None:
    """Noise is drawn in whole units, and the published numbers are not multiples of the unit."""


@problem("GRM-808", BundleError, "{path}: entries are larger than the noise explains.", _ASK)
def entries_too_large(path: str) -> None:
    """An entry exceeds its public bound by more than 60 standard deviations of the noise."""


@problem(
    "GRM-809", BundleError, "{path}: the number of rows is not the published noisy number.", _ASK
)
def row_count_not_noisy(path: str) -> None:
    """Under add-remove, the number of rows must be the noisy trace or a noisy whole number."""


@problem("GRM-810", BundleError, "Estimate '{estimate}' was not made from this release.", _ASK)
def estimate_of_other_release(estimate: str) -> None:
    """All estimates in a report must be made from the release that it is about."""


@problem("GRM-811", BundleError, "{path}: '{release}' is not the release that was averaged.", _ASK)
def source_replaced(path: str, release: str) -> None:
    """The checksum of a source differs from the one that the average states."""


@problem("GRM-836", BundleError, "{path}: '{release}' is not the release of the constants.", _ASK)
def constants_replaced(path: str, release: str) -> None:
    """The checksum of the release of the constants differs from the one that is stated."""


@problem("GRM-838", BundleError, "{path}: '{release}' is not the release that was pooled.", _ASK)
def pooled_release_replaced(path: str, release: str) -> None:
    """The checksum of another release differs from the one that a pooled estimate states."""


# A bundle that contradicts the ledger.


@problem(
    "GRM-812",
    BundleError,
    "{path} was never charged in this ledger.",
    "If it was charged elsewhere, verify it there, or with '--archive', without the ledger.",
)
def never_charged(path: str) -> None:
    """The ledger does not have a charge for a bundle in the archive."""


@problem(
    "GRM-813",
    BundleError,
    "{path} states epsilon={epsilon:.4g} at delta={delta:g} (mu={mu:.4g}), but the ledger has "
    "charged epsilon={charged_epsilon:.4g} (mu={charged_mu:.4g}).",
    _ASK,
)
def guarantee_not_charged(
    path: str, epsilon: float, delta: float, mu: float, charged_epsilon: float, charged_mu: float
) -> None:
    """The guarantee in the bundle differs from the charge in the ledger."""


@problem(
    "GRM-814",
    Invalid,
    "{path} exists, but in the ledger the release is '{state}'.",
    "Restore the archive and the ledger from copies of the same time.",
)
def bundle_unexpected(path: str, state: str) -> None:
    """A bundle or a notice of withdrawal exists, but according to the ledger it should not."""


@problem(
    "GRM-815",
    Invalid,
    "{path} is missing, but in the ledger the release is withdrawn.",
    "Run 'gramercy withdraw' again: it writes the notice.",
)
def withdrawal_missing(path: str) -> None:
    """The ledger records a withdrawal, and the archive does not have the notice."""


@problem(
    "GRM-816",
    Invalid,
    "{path} differs from the withdrawal in the ledger.",
    "Restore the notice from a copy.",
)
def withdrawal_differs(path: str) -> None:
    """A notice of withdrawal states another reason or another bundle than the ledger."""


@problem(
    "GRM-817",
    Invalid,
    "The release was charged and then interrupted, and the ledger does not record the failure.",
    "Repeat its request: the release is then finished, or recorded as spent.",
)
def failure_not_recorded() -> None:
    """The run ended between charge and publication, and no later run has recorded the outcome."""


@problem(
    "GRM-841",
    BundleError,
    "{path} states a budget that was not in use when the release was charged.",
    _ASK,
)
def budget_not_in_use(path: str) -> None:
    """A release states the budget at its charge, and the ledger has another one at that time."""


@problem(
    "GRM-842",
    BundleError,
    "{path} is missing, but the ledger has recorded it.",
    "Restore it from a copy, or make it again: 'gramercy estimate' makes estimates and reports.",
)
def recorded_bundle_missing(path: str) -> None:
    """An estimate or a report was deleted from the archive."""


@problem(
    "GRM-843",
    BundleError,
    "{path} is not the bundle that the ledger has recorded.",
    "Restore it from a copy.",
)
def recorded_bundle_replaced(path: str) -> None:
    """An estimate or a report was replaced by another one, which a trusted key has signed."""


@problem(
    "GRM-844",
    Notice,
    "{release}: the ledger has no record of {names}.",
    "Repeat the command that made them: it records them.",
)
def bundles_not_recorded(release: str, names: tuple[str, ...]) -> None:
    """The process that made them crashed before it recorded them."""


@problem(
    "GRM-849",
    Notice,
    "{path} is missing, so a deleted release or withdrawal would not be noticed.",
    "Ask the curator for the signed listing.",
)
def no_signed_listing(path: str) -> None:
    """The archive was published before listings were, or its listing was not copied or deleted."""


@problem("GRM-846", Notice, "The charge was not compared with a ledger, because none was read.")
def charge_not_compared() -> None:
    """Only the curator's ledger shows whether a release was charged, and what else was."""


# What an audit finds in the archive and the run history.


@problem(
    "GRM-818",
    Notice,
    "No public key is trusted, so signatures could not be attributed to a curator.",
    "Name the curator's public key with '--key'.",
)
def no_trusted_key() -> None:
    """The home does not have keys, and the command names none."""


@problem(
    "GRM-819",
    Notice,
    "The bundle is in the archive, but the ledger does not have a charge for it.",
    "Find out who put it there; a release without a charge breaks the budget.",
)
def bundle_without_charge() -> None:
    """The archive has a release that this ledger never charged."""


@problem(
    "GRM-820",
    Notice,
    "The file is in the archive, but does not belong to a bundle.",
    "Remove it, if it is private.",
)
def stray_file() -> None:
    """The archive is public, and has a file that no release needs."""


@problem(
    "GRM-821",
    Notice,
    "The release was published by the flow runs {runs}, but the ledger does not have it.",
    "Restore the ledger that these runs charged.",
)
def run_without_charge(runs: tuple[str, ...]) -> None:
    """Prefect's history has a release that the ledger does not: the ledger may be an old copy."""


# What verification could not check.


@problem(
    "GRM-823",
    Notice,
    "The average was not recomputed: not all of its sources are in this archive.",
    "Verify it in an archive that has them.",
)
def average_not_recomputed() -> None:
    """An average of reports can be recomputed only from all releases that it averages."""


@problem(
    "GRM-837",
    Notice,
    "The constants were not recomputed: '{release}' is not in this archive.",
    "Verify the release in an archive that has both.",
)
def constants_not_recomputed(release: str) -> None:
    """Constants of another release can be recomputed only from its histograms."""


@problem(
    "GRM-839",
    Notice,
    "Estimate {estimate}: the numbers were not recomputed, because '{release}' is not in this "
    "archive.",
    "Verify the release in an archive that has both.",
)
def pool_not_recomputed(estimate: str, release: str) -> None:
    """A pooled estimate can be recomputed only from all releases that were pooled."""


@problem(
    "GRM-840",
    Notice,
    "Estimate {estimate}: '{release}', one of the releases that were pooled, was withdrawn later.",
    "Read its notice of withdrawal, and pool the other releases again.",
)
def pooled_release_withdrawn(estimate: str, release: str) -> None:
    """A notice of withdrawal asks not to use a release, nor what was estimated from it."""


# What an auditor or an analyst should know.


@problem(
    "GRM-831",
    Notice,
    "On {day} the ledger was declared to be moved, or its archive lost: {reason}",
)
def ledger_moved(day: str, reason: str) -> None:
    """A steward ran 'gramercy budget --moved': confirm that the reason is right."""


@problem(
    "GRM-848",
    Notice,
    "This is a copy, which was only read: the ledger was in the file {location}.",
    "Audit the original as well, which may have entries that are newer.",
)
def copy_audited(location: str) -> None:
    """An audit with the option --copy; the ledger of a copy can be read, and cannot be charged."""


@problem(
    "GRM-832",
    Notice,
    "On {day} the budget of {dataset} was {change} to epsilon={epsilon}, delta={delta}: {reason}",
)
def budget_changed(
    day: str, dataset: str, change: str, epsilon: float | None, delta: float | None, reason: str
) -> None:
    """A steward changed a budget: confirm that the reason is right."""


@problem(
    "GRM-833",
    Notice,
    "{datasets} read the same table, and each has its own budget.",
    "Together they may spend the sum of these budgets. If the data is the same, keep one of them.",
)
def table_shared(datasets: tuple[str, ...]) -> None:
    """A table that is read under several ids is protected only by the sum of their budgets."""


@problem("GRM-834", Notice, "{release}: its flow run is no longer in Prefect's history.")
def run_forgotten(release: str) -> None:
    """Prefect's database was cleaned or replaced since the release was published."""
