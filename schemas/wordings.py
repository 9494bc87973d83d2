"""What several modules say in the same words, each with its family of codes.

Call one with its facts, in the order in which the words name them.
"""

from __future__ import annotations

from gramercy.schemas import families
from gramercy.schemas.problem import Wording
from gramercy.schemas.url import USE_ENVIRONMENT

conflicting_options = Wording(
    families.USAGE,
    "These options cannot be combined: {options}.",
    "Run the command once for each option.",
)
answer_not_a_column = Wording(
    families.DRAFT,
    "'{answer}' is not a column that can be published. Columns, most similar first: {known}.",
    "Spell it as the table does, or press Enter.",
)
contract_not_valid = Wording(families.CONTRACT_FILE, "{file} is not a valid contract:")
request_not_valid = Wording(families.REQUEST_FILE, "{file} is not valid:")
value_empty = Wording(families.KEY, "This key has no value.", "Write {expected}.")
no_entries = Wording(families.KEY, "Must not be empty.")
delta_too_large = Wording(
    families.VALUE,
    "'budget.delta' must be less than 1/{count_key} = {limit:.3g}.",
    "Choose a smaller delta: at this one, publishing a whole record would be allowed.",
)
radius_missing = Wording(
    families.REQUEST_KEYS,
    "'clip' needs a radius.",
    "Write 'normalisation: {{kind: clip, radius: R}}', or 'scaling: private', which chooses it.",
)
scaling_needs_delta = Wording(
    families.SCALING,
    "'scaling: private' needs a delta greater than 0.",
    "State 'mechanism.delta', far below one over the number of rows.",
)
file_not_accessible = Wording(
    families.FILE,
    "{file}: cannot be accessed ({reason}).",
    "Check that the file exists, that you may read it, and that its disk works. Databases and "
    "Delta tables are read from a copy in $GRAMERCY_HOME/tables.",
)
column_repeated = Wording(
    families.TABLE_COLUMNS,
    "{file}: columns {first} and {second} have the same name.",
    "Rename one of them; or give the file a header line, if its first line is a row.",
)
row_count_differs = Wording(
    families.ROW_COUNT,
    "{source}: the table has {rows} rows, but the contract's 'rows' is {declared}.",
    "Run 'gramercy check REQUEST': every line of a CSV file counts, also blank ones and both parts "
    "of one with a line break inside quotes, and it says what to do. If there is no such "
    "line, and the table is complete, write 'rows: {rows}', or declare 'neighbours: add-remove'.",
)
no_rows = Wording(
    families.ROW_COUNT,
    "{source}: the table has {rows} rows, but the contract's 'rows' is {declared}.",
    "There is nothing after the header: export or copy the table again.",
)
row_limit_exceeded = Wording(
    families.ROW_COUNT,
    "{source}: the table has more than {limit} rows, but the contract's 'rows' is {declared}.",
    "Write the number of rows as 'rows' (blank lines count), or 'neighbours: add-remove'.",
)
table_changed = Wording(
    families.CHANGED,
    "The table changed while it was read.",
    "Publish from a copy that does not change.",
)
ledger_copied = Wording(
    families.UNTRUSTED,
    "{ledger}: the ledger was copied, moved or restored: it was in the file {location}. A copy "
    "would spend the same budget twice.",
    "Use the original. If the ledger was moved or restored, and the original is no longer used, "
    "run 'gramercy budget --moved --reason WHY'. An audit of a copy has the option --copy.",
)
unknown_release = Wording(
    families.UNKNOWN_RELEASE,
    "{archive} has no release '{release}'.",
    "Releases, most similar first: {known}.",
)
write_behind_link = Wording(
    families.STORE,
    "{path} is reached through a link, and links inside an archive are not followed.",
    "Replace the link with the folder itself.",
)
not_an_address = Wording(
    families.NOT_AN_ARCHIVE,
    "{address} is neither a folder nor a URL.",
    "Write a URL such as s3://bucket/path.",
)
user_in_url = Wording(
    families.NOT_AN_ARCHIVE,
    "{url}: {protocol}:// URLs must not contain a user or password.",
    USE_ENVIRONMENT,
)
query_in_url = Wording(
    families.NOT_AN_ARCHIVE,
    "{url}: the URL of an archive must not have a query.",
    USE_ENVIRONMENT,
)
store_failed = Wording(
    families.STORE,
    "{url}: cannot {action} ({reason}).",
    "Check the network, and the credentials in the environment.",
)
no_release = Wording(
    families.UNKNOWN_RELEASE, "{archive} has no release yet.", "Publish one first."
)
not_a_file = Wording(
    families.SEAL, "{path} is not a regular file.", "Fetch the bundle again from its curator."
)
file_unreadable = Wording(
    families.SEAL,
    "{path} cannot be read ({reason}).",
    "Check the disk and your permissions. If the file is damaged, fetch the bundle again from its"
    " curator.",
)
untrusted_signer = Wording(
    families.SIGNER,
    "{path} is signed by the key {signer}, which is not trusted (trusted keys: {trusted}).",
    "If it is the curator's, ask the curator for the public key, and add it to the trusted keys.",
)
wrong_release = Wording(
    families.DESCRIPTION,
    "{path} describes a release other than '{release}'.",
    "Ask the curator for the bundle that belongs here.",
)
formats_differ = Wording(
    families.CONTENT,
    "{path} and {other} do not contain the same numbers.",
    "Fetch the bundle again from its curator.",
)
not_a_table = Wording(
    families.CONTENT, "{path} is not a table.", "Fetch the bundle again from its curator."
)
not_histograms = Wording(
    families.CONTENT,
    "{path} does not contain the histograms that its manifest describes.",
    "Fetch the bundle again from its curator.",
)
bundle_file_too_large = Wording(
    families.SEAL, "{path} is larger than {most} bytes.", "Fetch the bundle again from its curator."
)
not_as_listed = Wording(
    families.LISTING,
    "{path} is not the bundle that the signed listing of the archive names.",
    "The bundle was replaced, or the listing is of another copy: ask the curator.",
)
listed_bundle_missing = Wording(
    families.LISTING,
    "{path} is missing, although the signed listing of the archive names it.",
    "Fetch the archive again, or ask the curator.",
)
served_file_too_large = Wording(
    families.FILE_TOO_LARGE,
    "{url} is larger than {most} bytes.",
    "Ask the curator for a copy of the archive.",
)
noise_too_small = Wording(
    families.NOISE_RANGE,
    "{mechanism}: the standard deviation {sd:.3g} is too small for exact noise.",
    "Ask for more noise.",
)
noise_too_large = Wording(
    families.NOISE_RANGE,
    "{mechanism}: the standard deviation {sd:.3g} is too large for exact noise.",
    "Ask for less noise.",
)
argument_out_of_range = Wording(families.ARGUMENT, "'{argument}' must be {allowed}.")
outcome_predicts_itself = Wording(
    families.FORMULA, "'{outcome}' is on both sides of the regression.", "Remove one of them."
)
rows_lack_columns = Wording(
    families.ANALYSIS, "The rows have no columns {missing}.", "Name them as in {known}."
)
analysis_needs_means = Wording(
    families.ANALYSIS,
    "'{estimator}' needs means of the columns, which this release does not have.",
    "They need rows that were not divided by their own length, and an intercept: 'normalisation: "
    "clip' in the request, 'intercept: true' in the contract.",
)
not_a_column_of_levels = Wording(
    families.ANALYSIS,
    "'{column}' is not a column of levels of this release.",
    "Columns of levels, most similar first: {known}.",
)
pool_of_rows = Wording(
    families.POOL,
    "'{release}' cannot be pooled: its noise is on the rows.",
    "Put the published rows of all releases together, and estimate from these.",
)
pool_too_small = Wording(
    families.POOL, "A pool needs two or more different releases.", "Given: {release}."
)
pool_of_withdrawn = Wording(
    families.POOL,
    "'{release}' cannot be pooled: it was withdrawn ({reason}).",
    "Leave this release out.",
)
not_a_release = Wording(
    families.POOL,
    "An opened release was expected, not an object of the type {given}.",
    "Open it by its name: catalogue['DATASET/RELEASE'].",
)
unknown_group = Wording(
    families.UNKNOWN_NAME,
    "'{release}' has no group '{group}'.",
    "Groups, most similar first: {known}.",
)
not_square = Wording(
    families.MATRIX, "{argument} must be a square matrix with at least one column."
)
not_finite = Wording(
    families.MATRIX, "{argument} must be finite.", "Remove NaN and infinite entries."
)
not_symmetric = Wording(families.MATRIX, "{argument} must be symmetric.", "Pass (A + A.T) / 2.")
not_positive = Wording(families.MATRIX, "{argument} must be positive and finite.")
negative_entries = Wording(families.MATRIX, "{argument} must not be negative.")
shapes_differ = Wording(families.MATRIX, "{argument} must have the same shape as {expected}.")
matrix_is_zero = Wording(
    families.ESTIMATE,
    "The denoised matrix is zero.",
    "Estimate from another release, with less noise or more rows.",
)
groups_missing = Wording(
    families.ESTIMATE,
    "The estimator compares the groups of a release, and there are none.",
    "Write 'by: COLUMN' in the request of the release, and no 'group' in that of the estimate.",
)
no_own_units = Wording(
    families.ANALYSIS,
    "'{release}' has no means and standard deviations of the columns.",
    "They need rows that were not divided by their own length, and an intercept: 'normalisation: "
    "clip' in the request, 'intercept: true' in the contract.",
)
bundle_missing = Wording(
    families.SEAL,
    "{path} is missing, but it was published.",
    "Restore it from a copy: noise is never drawn again for a published release.",
)
bundle_replaced = Wording(
    families.SEAL,
    "{path} is not the bundle that was published.",
    "Restore it from a copy: noise is never drawn again for a published release.",
)
sums_not_as_planned = Wording(
    families.INTERNAL,
    "The sums that were computed do not match the request.",
    "This is a defect of Gramercy: please report it.",
)
unknown_name = Wording(
    families.UNKNOWN_RELEASE,
    "{archive}: no release or data set is named '{name}'.",
    "Names, most similar first: {known}.",
)
no_ledger = Wording(
    families.NO_LEDGER,
    "{path}: the ledger does not exist.",
    "Set GRAMERCY_HOME or GRAMERCY_LEDGER_URL to its location.",
)
file_contradicts = Wording(
    families.CONTRADICTION,
    "{path} does not follow from {source}.",
    "Ask the curator for the bundle that was published.",
)
folder_mismatch = Wording(
    families.CONTRADICTION,
    "{path} describes {described}, and is in the folder of another one.",
    "Restore the folders as they were published: bundles were moved or swapped.",
)
bundle_unexpected = Wording(
    families.STATE,
    "{path} exists, but in the ledger the release is '{state}'.",
    "Restore the archive and the ledger from copies of the same time.",
)
table_shared = Wording(
    families.RECORDED,
    "{datasets} read the same table, and each has its own budget.",
    "Together they may spend the sum of these budgets. If the data is the same, keep one of them.",
)
table_not_copied = Wording(
    families.DATABASE_READ,
    "{source}: the table is copied once, by 'gramercy check' or a release, and then read.",
    "Run one of these.",
)
conversion_option = Wording(families.USAGE, "{reason}.", "{remedy}")
later_step_failed = Wording(families.LATER_STEP, "{done}, but a later step failed: {problem}")
ledger_not_read = Wording(families.NOT_CHECKED, "The ledger was not read: that needs {packages}.")
release_withdrawn = Wording(families.WITHDRAWN, "{release} was withdrawn: {reason}")
files_changed = Wording(
    families.VERSION_NOT_FINAL,
    "The files have changed since this version was published.",
    "To publish the new data, give it a new version: it is a new release and a new charge.",
)
steps_changed = Wording(
    families.VERSION_NOT_FINAL,
    "Earlier steps of the series have other numbers of rows than when the table was last read: "
    "{steps}.",
    "Sums hold only a part of a row that is added late, and keep a part of one that is deleted. "
    "Publish later, with a longer 'lag'; if many rows have changed, start another series.",
)
persons_differ = Wording(
    families.PERSON_IDS,
    "The table has {found} persons, but 'persons' in the contract is {declared}.",
    "The guarantee holds for each spelling of an id, and not for a person with two of them. "
    "Averages are off by that ratio. Write every id in one way; or, if each id is one person, "
    "correct 'persons' by what is public.",
)
unknown_levels = Wording(
    families.READING,
    "Column '{column}': {rows} rows have a value that is not one of the declared levels; they are "
    "not predicted.",
    "The levels are: {levels}.",
)
unit_rows = Wording(
    families.READING,
    "{release}: every row was divided by its own length, so correlations are associations of "
    "directions, not Pearson correlations of the table.",
    "For means, standard deviations and correlations in the columns' own units, publish with "
    "'normalisation: clip' and an intercept.",
)
