"""An anchor: the head of the budget ledger, published, so that a ledger cut short is found."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gramercy.schemas.model import Digest, Model


class Anchor(Model):
    """How far a ledger had come.

    Parameters
    ----------
    ledger
        Which ledger: 32 hexadecimal digits.
    seq
        The number of its latest entry.
    hash
        That entry's hash, which follows from all entries before it.
    """

    ledger: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    seq: Annotated[int, Field(strict=True, ge=1, lt=10**12)]
    hash: Digest
