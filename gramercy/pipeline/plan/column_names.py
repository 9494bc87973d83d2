"""Names that readers of a release can see and distinguish, and that its files can contain."""

from __future__ import annotations

from gramercy.common.lookalikes import has_hidden, skeleton
from gramercy.pipeline.context import Context
from gramercy.schemas import families
from gramercy.schemas.contract import Contract

# A bundle repeats the names in descriptions, CSV headers and Parquet footers, each of which readers
# bound: a release with longer names could be published, but not read.
MOST_NAME_BYTES, MOST_NAMES_BYTES = 16_384, 500_000
_MOST_REPORTED_BYTES = 10_000_000  # reports have a column for every pair of names
_START = 40  # characters of a long name that its error quotes


def check_names(context: Context, contract: Contract, *, in_pairs: bool = False) -> None:
    """Refuse names that are too long, look like others, or are partly invisible.

    The names of registered data sets are fixed, so they are not checked.

    Parameters
    ----------
    context, contract
        The home with the ledger, and the contract.
    in_pairs
        Whether each column of the release is named by a pair of columns, as in reports.

    Raises
    ------
    ContractError
        Naming the columns.
    """
    names = [x for n in contract.names for x in contract.columns[n].matrix_names(n)]
    sizes = [len(name.encode()) for name in names]
    of_pairs = _MOST_REPORTED_BYTES // (len(names) + 2)
    most = min(of_pairs, MOST_NAMES_BYTES) if in_pairs else MOST_NAMES_BYTES
    is_short = max(sizes) <= MOST_NAME_BYTES and sum(sizes) <= most
    if is_short and all(name.isascii() for name in names):
        return
    ledger = context.existing_ledger
    if ledger is not None and contract.id in ledger.datasets():
        return
    for name, size in zip(names, sizes, strict=True):
        if size > MOST_NAME_BYTES:
            raise families.CONTRACT_USE(
                "The name of the column '{start}...' has {bytes} bytes; a name may have {most}.",
                "Rename the column in the table, or shorten the level.",
                start=name[:_START],
                bytes=size,
                most=MOST_NAME_BYTES,
            )
    if not is_short:
        raise families.CONTRACT_USE(
            "The names of the columns have {bytes} bytes together; they may have {most}.",
            "Use shorter names or fewer columns.",
            bytes=sum(sizes),
            most=most,
        )
    seen: dict[str, str] = {}
    for name in names:
        if has_hidden(name):
            raise families.CONTRACT_USE(
                "The name of the column '{name}' has invisible characters, or ones that break or "
                "reverse its line.",
                "Rename the column in the table.",
                name=name,
            )
        other = seen.setdefault(skeleton(name), name)
        if other != name:
            raise families.CONTRACT_USE(
                "The names of the columns '{first}' and '{second}' look the same.",
                "Rename one of them in the table.",
                first=other,
                second=name,
            )
