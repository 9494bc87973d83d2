"""Which tables are neighbours: what a guarantee protects, and what it makes public."""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

ProtectedUnit = Literal["row", "cell", "person"]

_CHANGES = {
    "row": ("one row replaced by any other row", "one row present or absent"),
    "person": (
        "all rows of one person replaced by any others",
        "one person present or absent, with all their rows",
    ),
    "cell": ("one cell replaced by any other, or missing", ""),
}


class Neighbours(StrEnum):
    """How a table differs from its neighbours: by a unit replaced, or by one added or removed."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add-remove"

    @property
    def count_is_public(self) -> bool:
        """Whether all neighbours have the same number of rows or persons, which is public."""
        return self is Neighbours.REPLACE_ONE

    @property
    def changed_units(self) -> int:
        """Units in which two neighbours differ: one that leaves, and one that enters."""
        return 2 if self is Neighbours.REPLACE_ONE else 1

    @property
    def change(self) -> str:
        """What happens to a unit, as a participle."""
        return "replaced" if self is Neighbours.REPLACE_ONE else "added or removed"

    def definition(self, unit: ProtectedUnit) -> str:
        """The relation in words."""
        replaced, added = _CHANGES[unit]
        counted = "persons" if unit == "person" else "rows"
        public = "public" if self.count_is_public else "private"
        change = replaced if self is Neighbours.REPLACE_ONE else added
        return f"{change}; the number of {counted} is {public}"

    def attack(self, unit: ProtectedUnit) -> str:
        """The attack that a guarantee bounds, in words."""
        if self is Neighbours.REPLACE_ONE:
            return (
                f"suppose an attacker knows every {unit} but one, and knows two equally likely "
                "candidates for that one"
            )
        return (
            f"suppose an attacker knows every other {unit}, and must decide whether one more "
            f"{unit}, which the attacker also knows, is in the table or not, both equally likely"
        )
