"""Locks between processes of one home; a lock goes with its process, however that ends."""

from __future__ import annotations

from contextlib import AbstractContextManager

from gramercy.common.home import Home
from gramercy.ledger.turns import Turn, on_this_machine


def alone(home: Home, name: str) -> AbstractContextManager[Turn]:
    """Hold the lock of this name; others of this home wait. See `ledger.turns`."""
    return on_this_machine(home.locks, name)
