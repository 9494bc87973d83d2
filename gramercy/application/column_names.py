"""Names of columns that readers of a release can see, and distinguish."""

from __future__ import annotations

from gramercy.application.context import Context
from gramercy.common.lookalikes import has_hidden, skeleton
from gramercy.schemas.column import matrix_columns
from gramercy.schemas.contract import Contract
from gramercy.schemas.problems.publication import column_name_hidden, column_names_alike


def check_column_names(context: Context, contract: Contract) -> None:
    """Refuse names that look like others, or are partly invisible.

    The names of registered data sets are fixed, so they are not checked.

    Raises
    ------
    ContractError
        Naming the columns.
    """
    names = [x for n in contract.names for x in matrix_columns(n, contract.levels(n))]
    if all(name.isascii() for name in names):
        return
    ledger = context.existing_ledger
    if ledger is not None and contract.id in ledger.datasets():
        return
    seen: dict[str, str] = {}
    for name in names:
        if has_hidden(name):
            raise column_name_hidden(name)
        other = seen.setdefault(skeleton(name), name)
        if other != name:
            raise column_names_alike(other, name)
