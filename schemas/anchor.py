"""An anchor: the published head of the budget ledger, which reveals a truncated ledger."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gramercy.schemas.model import Digest, Model


class Anchor(Model):
    """The last entry of a ledger at some moment.

    Parameters
    ----------
    ledger
        Id of the ledger, 32 hexadecimal digits.
    seq
        Number of its last entry.
    hash
        Hash of that entry, which depends on all entries before it.
    """

    ledger: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    seq: Annotated[int, Field(strict=True, ge=1, lt=10**12)]
    hash: Digest
