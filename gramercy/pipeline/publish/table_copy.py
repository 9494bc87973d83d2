"""The private copy of a table that is not read in place, which all steps of a release read.

A database changes while it is read, so its table is read once, in one statement, into a file of the
home that only its owner may read. So is a Delta table, whose files may be removed at any time. The
copy is removed when the release is sealed or has failed. If the process was killed, the next
release or check of any data set removes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gramercy.archive.store.staging import StagingArea
from gramercy.common.home import Home
from gramercy.pipeline.plan.planning import Plan
from gramercy.pipeline.plan.table_header import check_table_header
from gramercy.pipeline.progress import rows_bar
from gramercy.pipeline.publish.expectations import required_columns
from gramercy.schemas.contract import Contract
from gramercy.tables.formats.source import copy_rows, needs_copy
from gramercy.tables.formats.table_format import CopiedColumns

_OWNER = "copy"
_COPY = "table"


def remove_abandoned_copies(home: Home) -> None:
    """Remove the copies of processes that were killed; copies in use stay."""
    StagingArea(home.tables).sweep(_OWNER)


@contextmanager
def copy_folder(home: Home, contract: Contract) -> Iterator[Path | None]:
    """A private folder for the copy, removed after the block; None if the table is not copied."""
    if not needs_copy(contract.source):
        yield None
        return
    with StagingArea(home.tables).new(_OWNER) as folder:
        yield folder


def copy_table(plan: Plan, folder: Path) -> Plan:
    """Copy the table of a plan; the result is the same plan, which reads the copy.

    Raises
    ------
    TableError
        If the columns differ from the contract, or the table cannot be read.
    ContractError
        If the copy cannot be written.
    """
    return replace(plan, contract=copied_contract(plan.contract, folder))


def copied_contract(contract: Contract, folder: Path) -> Contract:
    """The contract with a private copy of its table as its source; see `copy_table`."""
    if not needs_copy(contract.source):
        return contract
    check_table_header(contract)
    others = [name for name in required_columns(contract) if name not in contract.columns]
    # The bar is never in a log: batch times depend on private cells.
    with rows_bar("copying", contract.rows) as on_rows:
        copied = copy_rows(
            contract.source,
            CopiedColumns(
                {name: contract.levels(name) for name in contract.names},
                others,
                rows=contract.rows if contract.checks_rows else None,
            ),
            folder / _COPY,
            on_rows=on_rows,
        )
    return contract.model_copy(update={"source": copied})
