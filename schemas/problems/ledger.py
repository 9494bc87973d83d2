"""The budget ledger: codes 330 to 399."""

from __future__ import annotations

from gramercy.schemas.errors import LedgerError, UntrustedLedger
from gramercy.schemas.problem import Notice, problem

_FIND_WRITER = (
    "Find out who can write to the ledger's database, keep a copy of it, and restore it from a "
    "backup; the bundles may be right. See docs/how-to/verify.md."
)

# Opening and using a ledger.


@problem(
    "GRM-330",
    LedgerError,
    "GRAMERCY_LEDGER_URL must be the URL of a PostgreSQL database, or of an SQLite file by its "
    "absolute path.",
    "Write postgresql://user@host/database or sqlite:////path/of/ledger.sqlite.",
)
def url_not_supported() -> None:
    """The URL cannot be parsed, or names another kind of database."""


@problem(
    "GRM-331",
    LedgerError,
    "GRAMERCY_LEDGER_URL needs the PostgreSQL driver, which is not installed.",
    "Run pip install 'gramercy[postgresql]'.",
)
def driver_missing() -> None:
    """The ledger is on PostgreSQL, and the package psycopg is missing."""


@problem(
    "GRM-332",
    LedgerError,
    "{ledger}: the ledger cannot be used ({reason}).",
    "Check that the disk has free space, you may write to the file, the database server answers, "
    "and no other process keeps the ledger locked.",
)
def ledger_unusable(ledger: str, reason: str) -> None:
    """The database or the disk reported an error, or the ledger stayed locked for a minute."""


@problem(
    "GRM-333",
    LedgerError,
    "The ledger has schema {schema:.20}, but this version of Gramercy knows schema {known} only.",
    "Use the version of Gramercy that created the ledger.",
)
def schema_unknown(schema: str, known: int) -> None:
    """Another version of Gramercy, with other tables, has created the ledger."""


@problem(
    "GRM-334",
    LedgerError,
    "The ledger's database does not make writers wait for each other.",
    "Keep the ledger on SQLite or PostgreSQL, with the tables as Gramercy created them.",
)
def writers_not_serialised() -> None:
    """Two writers changed the ledger at the same time, which its database must prevent."""


@problem(
    "GRM-335",
    LedgerError,
    "{path}: this machine has no id, and none could be stored ({reason}).",
    "Make the folder writable, or set XDG_STATE_HOME to a writable folder outside GRAMERCY_HOME.",
)
def machine_id_not_stored(path: str, reason: str) -> None:
    """A ledger in a file is bound to its machine, and the system provides no machine id."""


@problem(
    "GRM-336",
    LedgerError,
    "{ledger}: the lock '{lock}' could not be acquired ({reason}).",
    "Another run may still hold it; otherwise check that the database server answers.",
)
def lock_not_acquired(ledger: str, lock: str, reason: str) -> None:
    """Another run held the lock of the data set for an hour, or the server did not answer."""


@problem(
    "GRM-337",
    LedgerError,
    "{ledger}: the lock '{lock}' was lost and could not be acquired again ({reason}).",
    "Another run may hold it now; otherwise check that the database server answers. Then run the "
    "same command again.",
)
def lock_lost(ledger: str, lock: str, reason: str) -> None:
    """The connection that holds the lock of the data set ended, such as by a server restart."""


# Whether a ledger can be trusted.


@problem(
    "GRM-338",
    UntrustedLedger,
    "{ledger}: the ledger was copied, moved or restored: it was in the file {location}. A copy "
    "would spend the same budget twice.",
    "Use the original. If the ledger was moved or restored, and the original is no longer used, "
    "run 'gramercy budget --moved --reason WHY'. An audit of a copy has the option --copy.",
)
def ledger_copied(ledger: str, location: str) -> None:
    """A ledger is bound to its location, and this one was opened at another."""


@problem(
    "GRM-339",
    UntrustedLedger,
    "{ledger}: the ledger has drawn noise, but {witness} has no anchor of it.",
    "Restore the ledger and the archive that belong together; if the archive is lost for good, run "
    "'gramercy budget --moved --reason WHY'.",
)
def anchor_missing(ledger: str, witness: str) -> None:
    """The archive is empty or lost, or belongs to another ledger."""


@problem(
    "GRM-340",
    UntrustedLedger,
    "{ledger}: {witness} belongs to another ledger.",
    "Restore the ledger and the archive that belong together: charges that are missing here are "
    "still spent.",
)
def anchor_of_another_ledger(ledger: str, witness: str) -> None:
    """The archive or the run history has an anchor of another ledger; this ledger may be new."""


@problem(
    "GRM-341",
    UntrustedLedger,
    "{ledger}: the ledger ends at entry {last}, but {witness} has an anchor of entry {anchored}.",
    "Restore the ledger and the archive that belong together: charges that are missing here are "
    "still spent.",
)
def ledger_behind_anchor(ledger: str, last: int, witness: str, anchored: int) -> None:
    """The ledger is older than its anchor: it was restored from a copy, and lacks charges."""


@problem(
    "GRM-342",
    UntrustedLedger,
    "{ledger}: entry {entry} differs from the anchor in {witness}.",
    "Restore the ledger and the archive that belong together: charges that are missing here are "
    "still spent.",
)
def ledger_differs_from_anchor(ledger: str, entry: int, witness: str) -> None:
    """The ledger was changed, or continued from an older copy, after the anchor was written."""


@problem(
    "GRM-343",
    UntrustedLedger,
    "Entry {entry} ({subject}) is malformed: it was changed after it was written.",
    "Run 'gramercy audit' to list all changes, and restore the ledger from a copy.",
)
def entry_malformed(entry: int, subject: str) -> None:
    """A field that every entry of this kind has is missing, or has an impossible value."""


@problem(
    "GRM-344",
    UntrustedLedger,
    "{ledger}: the first entry or the head of the ledger is missing or was changed.",
    "Restore the ledger from a copy.",
)
def head_missing(ledger: str) -> None:
    """The database has the ledger's tables, but not what Gramercy writes when it creates them."""


@problem(
    "GRM-364",
    UntrustedLedger,
    "{ledger}: the ledger is damaged ({reason}).",
    "Keep a copy of the file, put the newest backup in its place, and run 'gramercy audit', which "
    "compares it with the anchors in the archive: charges that the backup lacks are still spent.",
)
def ledger_damaged(ledger: str, reason: str) -> None:
    """The file was cut short, overwritten, or is not a database: entries cannot be read."""


# Findings of an audit: what is wrong with an entry.


@problem("GRM-345", Notice, "Entry {entry} is malformed.", "It was changed after it was written.")
def malformed(entry: int) -> None:
    """A field that every entry of this kind has is missing, or has an impossible value."""


@problem("GRM-346", Notice, "Entries are missing before entry {entry}: {count}.", _FIND_WRITER)
def entries_missing(entry: int, count: int) -> None:
    """Entries are numbered without gaps, so the missing ones were removed."""


@problem("GRM-347", Notice, "Entry {entry} does not follow from the entry before it.", _FIND_WRITER)
def not_chained(entry: int) -> None:
    """Every entry states the hash of the entry before it, and this one states a wrong hash."""


@problem(
    "GRM-348",
    Notice,
    "Entry {entry} was changed: its hash does not match its content.",
    _FIND_WRITER,
)
def hash_mismatch(entry: int) -> None:
    """The hash of an entry is computed from everything that it states."""


@problem(
    "GRM-349",
    Notice,
    "Entry {entry} differs from its anchor outside the ledger.",
    _FIND_WRITER,
)
def differs_from_anchor(entry: int) -> None:
    """The archive or the run history has another hash of this entry: the ledger was rewritten."""


@problem(
    "GRM-350",
    Notice,
    "The ledger ends at entry {last}, but its head names entry {head}.",
    _FIND_WRITER,
)
def head_mismatch(last: int, head: int) -> None:
    """The head has the number and the hash of the last entry: one of the two was changed."""


@problem(
    "GRM-351",
    Notice,
    "The ledger ends at entry {last}, but there is an anchor of entry {anchored}.",
    _FIND_WRITER,
)
def behind_anchor(last: int, anchored: int) -> None:
    """Entries were removed from the end, or the ledger was restored from an older copy."""


@problem(
    "GRM-352",
    Notice,
    "Entry {entry} of kind '{kind}' has the wrong subject.",
    _FIND_WRITER,
)
def subject_mismatch(entry: int, kind: str) -> None:
    """An entry about the ledger itself has no data set; every other entry has one."""


@problem(
    "GRM-353",
    Notice,
    "Entry {entry} is of kind '{kind}'; the first entry alone must open the ledger.",
    _FIND_WRITER,
)
def opened_elsewhere(entry: int, kind: str) -> None:
    """Either the first entry does not open the ledger, or a later entry does."""


@problem(
    "GRM-354",
    Notice,
    "Entry {entry} registers its data set a second time.",
    _FIND_WRITER,
)
def registered_twice(entry: int) -> None:
    """A data set is registered by its first charge only."""


@problem(
    "GRM-355",
    Notice,
    "Entry {entry} is about a data set that was not registered.",
    _FIND_WRITER,
)
def not_registered(entry: int) -> None:
    """A data set is registered before it is charged."""


@problem(
    "GRM-356",
    Notice,
    "Entry {entry} changes a release from {state} to {new_state}, which is not allowed.",
    _FIND_WRITER,
)
def state_out_of_order(entry: int, state: str, new_state: str) -> None:
    """A release passes through its states once and in order."""


@problem(
    "GRM-357",
    Notice,
    "Entry {entry} sets a budget whose delta is 1/rows or more.",
    _FIND_WRITER,
)
def budget_delta_too_large(entry: int) -> None:
    """At such a delta, publishing a whole row would be allowed."""


@problem(
    "GRM-358",
    Notice,
    "Entry {entry} is of kind '{kind}', but changes the budget in another way.",
    _FIND_WRITER,
)
def wrong_budget_change(entry: int, kind: str) -> None:
    """A raised budget must not be smaller in epsilon or delta, and a lowered one not larger.

    Whether a budget is for the lifetime, or per year, month or other period, never changes.
    """


@problem(
    "GRM-360",
    Notice,
    "Entry {entry} states a total that is not the sum of all charges up to it.",
    _FIND_WRITER,
)
def total_mismatch(entry: int) -> None:
    """Every charge states the sum, and the number, of all charges of its data set so far."""


@problem(
    "GRM-361",
    Notice,
    "Entry {entry} is charged to the period '{window}', but its version is of another period.",
    _FIND_WRITER,
)
def charged_to_wrong_period(entry: int, window: str) -> None:
    """Where a budget is per period, a version is charged to the period at its start."""


@problem(
    "GRM-362",
    Notice,
    "Entry {entry} charges a release whose number is out of sequence.",
    _FIND_WRITER,
)
def release_out_of_sequence(entry: int) -> None:
    """The name of a release ends with the number of its charge."""


@problem(
    "GRM-363",
    Notice,
    "Entry {entry} exceeds the budget that applied at its time.",
    _FIND_WRITER,
)
def budget_overspent(entry: int) -> None:
    """The sum of all charges up to this one is more than the budget allowed when it was made."""


@problem(
    "GRM-365",
    Notice,
    "{count} entries, from entry {entry} to entry {last}, have the same problem. The first is "
    "{first}",
    _FIND_WRITER,
)
def entries_alike(count: int, entry: int, last: int, first: str) -> None:
    """One cause, such as an edit of all times or of an early charge, shows in many entries."""
