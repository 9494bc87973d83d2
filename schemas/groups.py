"""The groups of a release: one for each level of a column, and one for all other rows."""

from __future__ import annotations

from gramercy.schemas.column import level_names
from gramercy.schemas.facts import LevelsFacts
from gramercy.schemas.problems.request import level_names_other_rows

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
        raise level_names_other_rows(by.name, OTHER)
