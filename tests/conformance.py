"""What the tests know of every mechanism. One that is not here fails them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mechanisms
from mechanisms.mechanism import Mechanism
from schemas.contract import Neighbours

BOTH: tuple[Neighbours, ...] = ("replace-one", "add-remove")
REPLACE: tuple[Neighbours, ...] = ("replace-one",)


@dataclass(frozen=True)
class Case:
    """How a mechanism is tried.

    Parameters
    ----------
    neighbours
        The relations in which it has a meaning.
    pure
        Whether its guarantee is a pure epsilon.
    keys
        What a request has to say besides name and privacy parameters.
    normalisation
        What its rows need.
    """

    neighbours: tuple[Neighbours, ...] = BOTH
    pure: bool = False
    keys: Mapping[str, Any] = field(default_factory=dict)
    normalisation: Any = "unit"

    def delta(self, delta: float) -> float:
        """The delta to ask for: none where the guarantee is pure."""
        return 0.0 if self.pure else delta


FLOATING: Mapping[str, Any] = {"arithmetic": "floating-point"}
CASES: Mapping[str, Case] = {
    "gaussian": Case(),
    "gaussian-iid": Case(),
    "laplace": Case(pure=True),
    "k-norm": Case(pure=True, keys=FLOATING),
    "matrix-laplace": Case(pure=True, keys=FLOATING),
    "wishart": Case(keys=FLOATING),
    "rows": Case(REPLACE),
    "integer-rows": Case(REPLACE, normalisation="whole"),
    "local": Case(REPLACE),
    "output": Case(REPLACE, keys={**FLOATING, "penalty": 0.5}),
}


def made(name: str, **asked: Any) -> Mechanism:
    """A mechanism as its case has it, of 5 columns, 1000 rows, epsilon 1 and delta 1e-6 or none."""
    case = CASES[name]
    usual: dict[str, Any] = {"p": 5, "n": 1000, "neighbours": "replace-one", "epsilon": 1.0}
    usual["delta"] = case.delta(1e-6)
    return mechanisms.registry[name].calibrated(**usual | dict(case.keys) | asked)


PAIRS = [(name, relation) for name, case in CASES.items() for relation in case.neighbours]


def test_every_mechanism_has_a_case() -> None:
    assert CASES.keys() == mechanisms.registry.keys()
