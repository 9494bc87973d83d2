"""The ledger of a home, if it can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gramercy.common.extras import INSTALL_PUBLISH
from gramercy.pipeline.context import Context
from gramercy.schemas.errors import MissingPackages

if TYPE_CHECKING:
    from gramercy.ledger import Ledger


def readable_ledger(context: Context) -> tuple[Ledger | None, str]:
    """The ledger of the home, or None; and the command that installs packages that are missing."""
    try:
        return context.existing_ledger, ""
    except MissingPackages:
        return None, INSTALL_PUBLISH
