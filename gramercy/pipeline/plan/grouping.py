"""The column by which a request groups the rows."""

from __future__ import annotations

from gramercy.common.similar_names import most_similar_first
from gramercy.pipeline.plan.request_model import Request
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.facts import LevelsFacts


def grouping_column(contract: Contract, request: Request) -> LevelsFacts | None:
    """The column of levels by which the rows are grouped; None if they are not.

    Raises
    ------
    RequestError
        If the contract has no such column of levels, or no other column.
    """
    name = request.by
    if name is None:
        return None
    if name not in contract.columns:
        raise families.GROUPS(
            "'by': the contract has no column '{name}'.",
            "Similar columns: {similar}.",
            name=name,
            similar=most_similar_first(name, contract.names),
        )
    levels = contract.levels(name)
    if levels is None:
        raise families.GROUPS(
            "'by': the column '{name}' has no levels.",
            "Declare 'levels' for it in the contract, or group by a column that has them.",
            name=name,
        )
    if len(contract.columns) == 1:
        raise families.GROUPS(
            "'by': '{name}' is the only column of the contract.",
            "Leave 'by' out, or declare more columns.",
            name=name,
        )
    return LevelsFacts(name=name, levels=levels)


def matrix_contract(contract: Contract, request: Request) -> Contract:
    """The contract of the columns of the matrix: without the one that groups the rows.

    Raises
    ------
    RequestError
        See `grouping_column`.
    """
    by = grouping_column(contract, request)
    return contract if by is None else contract.without_column(by.name)
