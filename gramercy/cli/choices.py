"""Options that accept only certain words."""

from __future__ import annotations

from collections.abc import Collection

from gramercy.common.similar_names import closest
from gramercy.schemas.problems.command_line import not_a_choice
from gramercy.schemas.problems.keys import option_misspelt


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Refuse a word that is not among the choices.

    Raises
    ------
    RequestError
        With the choice that was probably meant, or else with all of them.
    """
    if value in choices:
        return
    suggestion = closest(value, choices)
    if suggestion is not None:
        raise option_misspelt(option, value, suggestion)
    raise not_a_choice(option, value, tuple(choices))
