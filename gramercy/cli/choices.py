"""Options that accept only certain words."""

from __future__ import annotations

from collections.abc import Collection

from gramercy.common.similar_names import closest
from gramercy.schemas import families


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
        raise families.USAGE(
            "{option}: '{value}' is unknown.",
            "Did you mean '{suggestion}'?",
            option=option,
            value=value,
            suggestion=suggestion,
        )
    raise families.USAGE(
        "{option} must be one of: {choices}.",
        "'{value}' is not.",
        option=option,
        value=value,
        choices=tuple(choices),
    )
