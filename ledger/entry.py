"""One line of the journal, and the hash that chains it to all before it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from mechanisms.composition import Total
from mechanisms.guarantee import Guarantee
from schemas.contract import Budget

NONE = "0" * 64  # what the first entry follows


@dataclass(frozen=True)
class Entry:
    """What happened to a data set or to one of its releases.

    Parameters
    ----------
    kind
        ``opened`` (the ledger itself) or ``moved``; ``registered`` or ``raised`` (a data set's
        budget); ``reserved`` (a charge), ``drawn``, ``sealed``, ``published``, ``spent`` or
        ``withdrawn`` (a release).
    dataset, release, window, request
        Which.
    mu, delta0, pure
        Of a charge; `pure` is None where there is no pure epsilon.
    epsilon, delta
        Of a budget.
    facts
        Everything else, as JSON.
    at
        When, UTC, ISO 8601. For people: no decision looks at it.
    seq
        Its number, from 1.
    salt
        Random.
    previous, hash
        Of the entry before, and of this one.
    """

    kind: str
    dataset: str | None = None
    release: str | None = None
    window: str | None = None
    request: str | None = None
    mu: float | None = None
    delta0: float | None = None
    pure: float | None = None
    epsilon: float | None = None
    delta: float | None = None
    facts: str = "{}"
    at: str = ""
    seq: int = 0
    salt: str = ""
    previous: str = NONE
    hash: str = field(default="", compare=False)

    def digest(self) -> str:
        """SHA-256 of everything it says; what `hash` has to be."""
        said = [getattr(self, name) for name in _HASHED]
        return hashlib.sha256(json.dumps(said, separators=(",", ":")).encode()).hexdigest()

    @cached_property
    def told(self) -> Mapping[str, Any]:
        """`facts`, parsed."""
        facts: dict[str, Any] = json.loads(self.facts)
        return facts

    @property
    def guarantee(self) -> Guarantee:
        """What was charged.

        Raises
        ------
        ValueError
            If this is no charge.
        """
        if self.mu is None or self.delta0 is None:
            raise ValueError(f"entry {self.seq} is no charge")
        return Guarantee(self.mu, self.delta0, float("inf") if self.pure is None else self.pure)

    @property
    def budget(self) -> Budget:
        """The budget that was entered."""
        return Budget.model_validate(
            {"epsilon": self.epsilon, "delta": self.delta, "per": self.told["per"]}
        )

    @property
    def total(self) -> Total:
        """The sum of all charges of its data set and window, this one included."""
        return Total.parse(self.told["total"])


_HASHED = [each.name for each in fields(Entry) if each.name != "hash"]
