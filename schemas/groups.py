"""The groups of a release: one for each level of a column, and one for all other rows."""

from __future__ import annotations

from gramercy.schemas import families
from gramercy.schemas.column import level_names
from gramercy.schemas.facts import LevelsFacts

OTHER = "(other)"
MAX_ENTRIES = 1 << 25  # of the matrices of all groups and folds: 256 MiB of doubles


def group_names(by: LevelsFacts) -> tuple[str, ...]:
    """Names of the groups, in the order of the levels; `OTHER` is last."""
    return (*level_names(by.levels), OTHER)


def check_group_names(by: LevelsFacts) -> None:
    """Refuse a level that is named like the group of all other rows.

    Raises
    ------
    RequestError
    """
    if OTHER in level_names(by.levels):
        raise families.GROUPS(
            "'by': the column '{name}' has a level '{level}', which names the group of all other "
            "rows.",
            "Rename the level in the table and in the contract, or leave 'by' out.",
            name=by.name,
            level=OTHER,
        )
