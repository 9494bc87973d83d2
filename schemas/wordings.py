"""What several modules say in the same words, each with its family of codes."""

from __future__ import annotations

from gramercy.schemas import families
from gramercy.schemas.errors import (
    ArchiveError,
    BundleError,
    ContractError,
    Invalid,
    InvalidValue,
    RequestError,
    StepFailed,
    TableError,
    UnknownName,
    UnknownRelease,
    UntrustedLedger,
)
from gramercy.schemas.problem import Notice


def conflicting_options(options: tuple[str, ...]) -> RequestError:
    """Two options of one command ask for different actions."""
    return families.USAGE(
        "These options cannot be combined: {options}.",
        "Run the command once for each option.",
        options=options,
    )


def answer_not_a_column(answer: str, known: tuple[str, ...]) -> RequestError:
    """A question of `gramercy new` expects the name of a column."""
    return families.DRAFT(
        "'{answer}' is not a column that can be published. Columns, most similar first: {known}.",
        "Spell it as the table does, or press Enter.",
        answer=answer,
        known=known,
    )


def contract_not_valid(file: str) -> ContractError:
    """One or more keys of a contract are missing, unknown or out of range; each is listed."""
    return families.CONTRACT_FILE(
        "{file} is not a valid contract:",
        file=file,
    )


def request_not_valid(file: str) -> RequestError:
    """One or more keys of a request or an option are missing, unknown or out of range."""
    return families.REQUEST_FILE(
        "{file} is not valid:",
        file=file,
    )


def value_empty(expected: str = "one") -> InvalidValue:
    """A key has an empty value; a draft of a contract leaves such keys for you to fill in."""
    return families.KEY(
        "This key has no value.",
        "Write {expected}.",
        expected=expected,
    )


def no_entries() -> InvalidValue:
    """A list or a text is empty where at least one entry or character is required."""
    return families.KEY(
        "Must not be empty.",
    )


def delta_too_large(count_key: str, limit: float) -> InvalidValue:
    """A delta of 1/n or more allows one of n records to be published outright."""
    return families.VALUE(
        "'budget.delta' must be less than 1/{count_key} = {limit:.3g}.",
        "Choose a smaller delta: at this one, publishing a whole record would be allowed.",
        count_key=count_key,
        limit=limit,
    )


def radius_missing() -> InvalidValue:
    """Rows are clipped at a public radius, which is declared or chosen from noisy histograms."""
    return families.REQUEST_KEYS(
        "'clip' needs a radius.",
        "Write 'normalisation: {{kind: clip, radius: R}}', or 'scaling: private', which chooses "
        "it.",
    )


def scaling_needs_delta() -> RequestError:
    """Histograms have Gaussian noise, which has no pure epsilon."""
    return families.SCALING(
        "'scaling: private' needs a delta greater than 0.",
        "State 'mechanism.delta', far below one over the number of rows.",
    )


def file_not_accessible(file: str, reason: str) -> TableError:
    """The store of a file gave an error when asked for its size and date."""
    return families.FILE(
        "{file}: cannot be accessed ({reason}).",
        "Check that the file exists, that you may read it, and that its disk works. Databases and "
        "Delta tables are read from a copy in $GRAMERCY_HOME/tables.",
        file=file,
        reason=reason,
    )


def column_repeated(file: str, first: int, second: int) -> TableError:
    """Two columns of a file have the same name; their positions, counted from 1, are reported."""
    return families.TABLE_COLUMNS(
        "{file}: columns {first} and {second} have the same name.",
        "Rename one of them; or give the file a header line, if its first line is a row.",
        file=file,
        first=first,
        second=second,
    )


def row_count_differs(source: str, rows: int, declared: int) -> TableError:
    """Under replace-one the number of rows is public, and must equal that of the table."""
    return families.ROW_COUNT(
        "{source}: the table has {rows} rows, but the contract's 'rows' is {declared}.",
        "Correct 'rows' (blank lines count), or declare 'neighbours: add-remove'.",
        source=source,
        rows=rows,
        declared=declared,
    )


def row_limit_exceeded(source: str, limit: int, declared: int) -> TableError:
    """Under replace-one, reading stops a million rows after the declared number."""
    return families.ROW_COUNT(
        "{source}: the table has more than {limit} rows, but the contract's 'rows' is {declared}.",
        "Correct 'rows' (blank lines count), or declare 'neighbours: add-remove'.",
        source=source,
        limit=limit,
        declared=declared,
    )


def table_changed() -> TableError:
    """A file was changed, added or removed during the release, which could count a row twice."""
    return families.CHANGED(
        "The table changed while it was read.",
        "Publish from a copy that does not change.",
    )


def ledger_copied(ledger: str, location: str) -> UntrustedLedger:
    """A ledger is bound to its location, and this one was opened at another."""
    return families.UNTRUSTED(
        "{ledger}: the ledger was copied, moved or restored: it was in the file {location}. A "
        "copy would spend the same budget twice.",
        "Use the original. If the ledger was moved or restored, and the original is no longer "
        "used, run 'gramercy budget --moved --reason WHY'. An audit of a copy has the option "
        "--copy.",
        ledger=ledger,
        location=location,
    )


def unknown_release(archive: str, release: str, known: tuple[str, ...]) -> UnknownRelease:
    """The archive has no release of this name."""
    return families.UNKNOWN_RELEASE(
        "{archive} has no release '{release}'.",
        "Releases, most similar first: {known}.",
        archive=archive,
        release=release,
        known=known,
    )


def write_behind_link(path: str) -> ArchiveError:
    """A symbolic link in the archive leads away from a file or folder that would be written."""
    return families.STORE(
        "{path} is reached through a link, and links inside an archive are not followed.",
        "Replace the link with the folder itself.",
        path=path,
    )


def not_an_address(address: str) -> RequestError:
    """The address of an archive looks like a misspelt URL that contains credentials."""
    return families.NOT_AN_ARCHIVE(
        "{address} is neither a folder nor a URL.",
        "Write a URL such as s3://bucket/path.",
        address=address,
    )


def user_in_url(url: str, protocol: str) -> RequestError:
    """The driver would read the user and password in the URL as part of a name."""
    return families.NOT_AN_ARCHIVE(
        "{url}: {protocol}:// URLs must not contain a user or password.",
        "Put credentials into the environment variables or configuration files of the driver (for "
        "S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials).",
        url=url,
        protocol=protocol,
    )


def query_in_url(url: str) -> RequestError:
    """The query of the URL would become part of the name of every object."""
    return families.NOT_AN_ARCHIVE(
        "{url}: the URL of an archive must not have a query.",
        "Put credentials into the environment variables or configuration files of the driver (for "
        "S3: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials).",
        url=url,
    )


def store_failed(url: str, action: str, reason: str) -> ArchiveError:
    """The object store could not be reached, or refused to read, write or remove an object."""
    return families.STORE(
        "Cannot {action} {url} ({reason}).",
        "Check the network, and the credentials in the environment.",
        url=url,
        action=action,
        reason=reason,
    )


def no_release(archive: str) -> UnknownRelease:
    """Nothing was published to the archive so far."""
    return families.UNKNOWN_RELEASE(
        "{archive} has no release yet.",
        "Publish one first.",
        archive=archive,
    )


def not_a_file(path: str) -> BundleError:
    """A bundle contains a folder, a link, a pipe or a device."""
    return families.SEAL(
        "{path} is not a regular file.",
        "Fetch the bundle again from its curator.",
        path=path,
    )


def file_unreadable(path: str, reason: str) -> BundleError:
    """The operating system refused to read a file, or the file is not valid UTF-8."""
    return families.SEAL(
        "{path} cannot be read ({reason}).",
        "Check the disk and your permissions. If the file is damaged, fetch the bundle again from "
        "its curator.",
        path=path,
        reason=reason,
    )


def untrusted_signer(path: str, signer: str, trusted: tuple[str, ...]) -> BundleError:
    """The signature is valid, but it was not made with a trusted key."""
    return families.SIGNER(
        "{path} is signed by the key {signer}, which is not trusted (trusted keys: {trusted}).",
        "If it is the curator's, ask the curator for the public key, and add it to the trusted "
        "keys.",
        path=path,
        signer=signer,
        trusted=trusted,
    )


def wrong_release(path: str, release: str) -> BundleError:
    """A genuine bundle is stored in the place of another one, or under another release."""
    return families.DESCRIPTION(
        "{path} describes a release other than '{release}'.",
        "Ask the curator for the bundle that belongs here.",
        path=path,
        release=release,
    )


def formats_differ(path: str, other: str) -> BundleError:
    """Files that hold the same matrix, table or graph in several formats contradict each other."""
    return families.CONTENT(
        "{path} and {other} do not contain the same numbers.",
        "Fetch the bundle again from its curator.",
        path=path,
        other=other,
    )


def not_a_table(path: str) -> BundleError:
    """A Parquet or CSV file of an estimate cannot be parsed."""
    return families.CONTENT(
        "{path} is not a table.",
        "Fetch the bundle again from its curator.",
        path=path,
    )


def not_histograms(path: str) -> BundleError:
    """The file of published histograms has other columns or bins, or states no noise."""
    return families.CONTENT(
        "{path} does not contain the histograms that its manifest describes.",
        "Fetch the bundle again from its curator.",
        path=path,
    )


def bundle_file_too_large(path: str, most: int) -> BundleError:
    """A file of a bundle is larger than Gramercy writes it; reading it may need any memory."""
    return families.SEAL(
        "{path} is larger than {most} bytes.",
        "Fetch the bundle again from its curator.",
        path=path,
        most=most,
    )


def not_as_listed(path: str) -> BundleError:
    """The seal of the bundle is valid, but its digest differs from the one in the listing."""
    return families.LISTING(
        "{path} is not the bundle that the signed listing of the archive names.",
        "The bundle was replaced, or the listing is of another copy: ask the curator.",
        path=path,
    )


def listed_bundle_missing(path: str) -> BundleError:
    """A bundle that was published is no longer in the archive."""
    return families.LISTING(
        "{path} is missing, although the signed listing of the archive names it.",
        "Fetch the archive again, or ask the curator.",
        path=path,
    )


def served_file_too_large(url: str, most: int) -> ArchiveError:
    """A server sends more than a file of an archive can contain; the rest was not read."""
    return families.FILE_TOO_LARGE(
        "{url} is larger than {most} bytes.",
        "Ask the curator for a copy of the archive.",
        url=url,
        most=most,
    )


def noise_too_small(mechanism: str, sd: float) -> RequestError:
    """The noise is so small that rounding it to the lattice leaves almost nothing of it."""
    return families.NOISE_RANGE(
        "{mechanism}: the standard deviation {sd:.3g} is too small for exact noise.",
        "Ask for more noise.",
        mechanism=mechanism,
        sd=sd,
    )


def noise_too_large(mechanism: str, sd: float) -> RequestError:
    """The noise, counted in lattice units, does not fit 64-bit integers."""
    return families.NOISE_RANGE(
        "{mechanism}: the standard deviation {sd:.3g} is too large for exact noise.",
        "Ask for less noise.",
        mechanism=mechanism,
        sd=sd,
    )


def argument_out_of_range(argument: str, allowed: str) -> InvalidValue:
    """A number given to a function of `gramercy.mechanisms` is outside its range, or is NaN."""
    return families.ARGUMENT(
        "'{argument}' must be {allowed}.",
        argument=argument,
        allowed=allowed,
    )


def outcome_predicts_itself(outcome: str) -> InvalidValue:
    """The outcome, or another level of its column, is one of the predictors."""
    return families.FORMULA(
        "'{outcome}' is on both sides of the regression.",
        "Remove one of them.",
        outcome=outcome,
    )


def rows_lack_columns(missing: tuple[str, ...], known: tuple[str, ...]) -> RequestError:
    """Rows are transformed by the columns that the components were computed from."""
    return families.ANALYSIS(
        "The rows have no columns {missing}.",
        "Name them as in {known}.",
        missing=missing,
        known=known,
    )


def analysis_needs_means(estimator: str) -> RequestError:
    """Shares and means are quotients by the intercept's entry, in rows whose lengths are kept."""
    return families.ANALYSIS(
        "'{estimator}' needs means of the columns, which this release does not have.",
        "They need rows that were not divided by their own length, and an intercept: "
        "'normalisation: clip' in the request, 'intercept: true' in the contract.",
        estimator=estimator,
    )


def not_a_column_of_levels(column: str, known: tuple[str, ...]) -> RequestError:
    """Cross tables count the levels that the contract declares."""
    return families.ANALYSIS(
        "'{column}' is not a column of levels of this release.",
        "Columns of levels, most similar first: {known}.",
        column=column,
        known=known,
    )


def pool_of_rows(release: str) -> RequestError:
    """The noise of published rows depends on the rows; these can be pooled as they are."""
    return families.POOL(
        "'{release}' cannot be pooled: its noise is on the rows.",
        "Put the published rows of all releases together, and estimate from these.",
        release=release,
    )


def pool_too_small(release: str) -> RequestError:
    """A release is pooled with others; the same release twice would count its noise as two."""
    return families.POOL(
        "A pool needs two or more different releases.",
        "Given: {release}.",
        release=release,
    )


def pool_of_withdrawn(release: str, reason: str) -> RequestError:
    """New estimates do not use a release that its curator has withdrawn."""
    return families.POOL(
        "'{release}' cannot be pooled: it was withdrawn ({reason}).",
        "Leave this release out.",
        release=release,
        reason=reason,
    )


def not_a_release(given: str) -> RequestError:
    """Pools and comparisons take releases that were opened; a pool takes no groups or pools."""
    return families.POOL(
        "An opened release was expected, not an object of the type {given}.",
        "Open it by its name: catalogue['DATASET/RELEASE'].",
        given=given,
    )


def unknown_group(release: str, group: str, known: tuple[str, ...]) -> UnknownName:
    """A release has groups if its request has the key 'by'; they are the levels of that column."""
    return families.UNKNOWN_NAME(
        "'{release}' has no group '{group}'.",
        "Groups, most similar first: {known}.",
        release=release,
        group=group,
        known=known,
    )


def not_square(argument: str) -> InvalidValue:
    """A matrix has different numbers of rows and columns, or none at all."""
    return families.MATRIX(
        "{argument} must be a square matrix with at least one column.",
        argument=argument,
    )


def not_finite(argument: str) -> InvalidValue:
    """An array has entries that are NaN or infinite."""
    return families.MATRIX(
        "{argument} must be finite.",
        "Remove NaN and infinite entries.",
        argument=argument,
    )


def not_symmetric(argument: str) -> InvalidValue:
    """A matrix differs from its transpose by more than rounding."""
    return families.MATRIX(
        "{argument} must be symmetric.",
        "Pass (A + A.T) / 2.",
        argument=argument,
    )


def not_positive(argument: str) -> InvalidValue:
    """A number is zero, negative, infinite or NaN."""
    return families.MATRIX(
        "{argument} must be positive and finite.",
        argument=argument,
    )


def negative_entries(argument: str) -> InvalidValue:
    """A penalty is negative or NaN."""
    return families.MATRIX(
        "{argument} must not be negative.",
        argument=argument,
    )


def shapes_differ(argument: str, expected: str) -> InvalidValue:
    """Two arrays that belong together have different shapes."""
    return families.MATRIX(
        "{argument} must have the same shape as {expected}.",
        argument=argument,
        expected=expected,
    )


def matrix_is_zero() -> RequestError:
    """Denoising has removed the whole matrix, so nothing can be estimated from it."""
    return families.ESTIMATE(
        "The denoised matrix is zero.",
        "Estimate from another release, with less noise or more rows.",
    )


def groups_missing() -> RequestError:
    """Quadratic discriminant analysis needs a matrix for every class: a release with groups."""
    return families.ESTIMATE(
        "The estimator compares the groups of a release, and there are none.",
        "Write 'by: COLUMN' in the request of the release, and no 'group' in that of the estimate.",
    )


def level_out_of_range() -> RequestError:
    """The confidence level of intervals is a probability above one half."""
    return families.ANALYSIS(
        "'level' must be greater than 0.5 and less than 1.",
        "0.95 is usual.",
    )


def no_own_units(release: str) -> RequestError:
    """Unit rows, and rows without an intercept, do not determine means in the columns' units."""
    return families.ANALYSIS(
        "'{release}' has no means and standard deviations of the columns.",
        "They need rows that were not divided by their own length, and an intercept: "
        "'normalisation: clip' in the request, 'intercept: true' in the contract.",
        release=release,
    )


def bundle_missing(path: str) -> BundleError:
    """The ledger records the publication of a bundle that is not in the archive."""
    return families.SEAL(
        "{path} is missing, but it was published.",
        "Restore it from a copy: noise is never drawn again for a published release.",
        path=path,
    )


def bundle_replaced(path: str) -> BundleError:
    """The checksum of a bundle differs from the one that the ledger recorded at publication."""
    return families.SEAL(
        "{path} is not the bundle that was published.",
        "Restore it from a copy: noise is never drawn again for a published release.",
        path=path,
    )


def sums_not_as_planned() -> StepFailed:
    """The step that reads the table and the step that draws noise disagree; nothing was drawn."""
    return families.INTERNAL(
        "The sums that were computed do not match the request.",
        "This is a defect of Gramercy: please report it.",
    )


def unknown_name(archive: str, name: str, known: tuple[str, ...]) -> UnknownRelease:
    """Neither the archive nor the ledger has the name that should be listed or verified."""
    return families.UNKNOWN_RELEASE(
        "{archive}: no release or data set is named '{name}'.",
        "Names, most similar first: {known}.",
        archive=archive,
        name=name,
        known=known,
    )


def no_ledger(path: str) -> RequestError:
    """An audit needs the ledger, and this home does not have one."""
    return families.NO_LEDGER(
        "{path}: the ledger does not exist.",
        "Set GRAMERCY_HOME or GRAMERCY_LEDGER_URL to its location.",
        path=path,
    )


def file_contradicts(path: str, source: str) -> BundleError:
    """The content of a file differs from what is recomputed from other files of the archive."""
    return families.CONTRADICTION(
        "{path} does not follow from {source}.",
        "Ask the curator for the bundle that was published.",
        path=path,
        source=source,
    )


def folder_mismatch(path: str, described: str) -> BundleError:
    """The description names another data set, release, estimate or report than its folder does."""
    return families.CONTRADICTION(
        "{path} describes {described}, and is in the folder of another one.",
        "Restore the folders as they were published: bundles were moved or swapped.",
        path=path,
        described=described,
    )


def bundle_unexpected(path: str, state: str) -> Invalid:
    """A bundle or a notice of withdrawal exists, but according to the ledger it should not."""
    return families.STATE(
        "{path} exists, but in the ledger the release is '{state}'.",
        "Restore the archive and the ledger from copies of the same time.",
        path=path,
        state=state,
    )


def table_shared(datasets: tuple[str, ...]) -> Notice:
    """A table that is read under several ids is protected only by the sum of their budgets."""
    return families.RECORDED(
        "{datasets} read the same table, and each has its own budget.",
        "Together they may spend the sum of these budgets. If the data is the same, keep one of "
        "them.",
        datasets=datasets,
    )


def table_not_copied(source: str) -> TableError:
    """A step that reads files was given a table of another kind that has not been copied."""
    return families.DATABASE_READ(
        "{source}: the table is copied once, by 'gramercy check' or a release, and then read.",
        "Run one of these.",
        source=source,
    )


def conversion_option(reason: str, remedy: str) -> RequestError:
    """An option of `gramercy convert` does not fit the file, or its target is not Parquet."""
    return families.USAGE(
        "{reason}.",
        "{remedy}",
        reason=reason,
        remedy=remedy,
    )


def later_step_failed(done: str, problem: str) -> Notice:
    """The main result is complete, but an estimate, a report or a page that follows it is not."""
    return families.LATER_STEP(
        "{done}, but a later step failed: {problem}",
        done=done,
        problem=problem,
    )


def ledger_not_read(packages: str) -> Notice:
    """Gramercy was installed for analysts, without the packages that read a ledger."""
    return families.NOT_CHECKED(
        "The ledger was not read: that needs {packages}.",
        packages=packages,
    )


def release_withdrawn(release: str, reason: str) -> Notice:
    """The curator asks everyone to stop using this release."""
    return families.WITHDRAWN(
        "{release} was withdrawn: {reason}",
        release=release,
        reason=reason,
    )


def files_changed() -> Notice:
    """The size or date of a file has changed."""
    return families.VERSION_NOT_FINAL(
        "The files have changed since this version was published.",
        "To publish the new data, give it a new version: it is a new release and a new charge.",
    )


def persons_differ(found: int | None, declared: int | None) -> Notice:
    """Sums are divided by the declared number of persons, which is not that of the ids."""
    return families.PERSON_IDS(
        "The table has {found} persons, but 'persons' in the contract is {declared}.",
        "The guarantee holds for each id: a person with two ids, or with one id in two spellings, "
        "counts as two. Averages are off by that ratio. Correct the ids or the contract.",
        found=found,
        declared=declared,
    )


def unit_rows(release: str) -> Notice:
    """Rows far from the centres count as much as near ones, and the rows' lengths are lost."""
    return families.READING(
        "{release}: every row was divided by its own length, so correlations are associations of "
        "directions, not Pearson correlations of the table.",
        "For means, standard deviations and correlations in the columns' own units, publish with "
        "'normalisation: clip' and an intercept.",
        release=release,
    )
