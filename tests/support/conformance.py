"""The test case of every mechanism. A mechanism without one fails the tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import pytest

from gramercy import mechanisms
from gramercy.mechanisms.mechanism import Additive, Mechanism, RowWise
from gramercy.mechanisms.output_perturbation import Output
from gramercy.mechanisms.sampling import sampler
from gramercy.schemas.neighbours import Neighbours

BOTH: tuple[Neighbours, ...] = ("replace-one", "add-remove")
REPLACE: tuple[Neighbours, ...] = ("replace-one",)


@dataclass(frozen=True)
class Case:
    """How a mechanism is tested.

    Parameters
    ----------
    neighbours
        The neighbour relations it supports.
    pure
        Whether its guarantee is a pure epsilon.
    keys
        Keys of a request besides name and privacy parameters.
    normalisation
        The normalisation its rows need.
    """

    neighbours: tuple[Neighbours, ...] = BOTH
    pure: bool = False
    keys: Mapping[str, Any] = field(default_factory=dict)
    normalisation: Any = "unit"

    def delta(self, delta: float) -> float:
        """The delta to request: 0 where the guarantee is pure."""
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
    "marginals": Case(normalisation="clip"),
}


def calibrated(name: str, **keys: Any) -> Mechanism:
    """Calibrate a mechanism: 5 columns, 1000 rows, epsilon 1 and delta 1e-6 (or 0) by default."""
    case = CASES[name]
    defaults: dict[str, Any] = {"p": 5, "n": 1000, "neighbours": "replace-one", "epsilon": 1.0}
    defaults["delta"] = case.delta(1e-6)
    return mechanisms.registry[name].calibrated(**defaults | dict(case.keys) | keys)


ALL_PAIRS = [(name, relation) for name, case in CASES.items() for relation in case.neighbours]
# Mechanisms that publish a matrix, or rows: all but histograms.
MATRICES = [name for name in CASES if mechanisms.registry[name].publishes.has_matrix]
PAIRS = [(name, relation) for name, relation in ALL_PAIRS if name in MATRICES]

ADDITIVE = [name for name in CASES if issubclass(mechanisms.registry[name], Additive)]
ROWWISE = [name for name in CASES if issubclass(mechanisms.registry[name], RowWise)]

Array = np.ndarray[Any, Any]


class Tape:
    """Replaces the sampler: records requests for noise, and replays the same numbers each time.

    Integer laws replay integers that are independent of the scale, so that two runs on two tables
    differ exactly by the difference of the statistics.
    """

    LAWS: ClassVar = {
        "rounded_gaussian",
        "rounded_laplace",
        "discrete_gaussian",
        "gaussian",
        "gamma",
    }

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[tuple[Any, ...]] = []
        self.answers: list[Array] = []
        self.rewind()
        for law in self.LAWS:
            monkeypatch.setattr(sampler, law, partial(self._play, law))

    def rewind(self, mode: Literal["noise", "indices", "large"] = "noise") -> list[tuple[Any, ...]]:
        """Start again; return the requests so far: law, scale or shape, size."""
        requests, self.requests, self.answers = self.requests, [], []
        self._mode, self._stream = mode, np.random.default_rng(1)
        return requests

    def scales(self, mechanism: Mechanism) -> tuple[Array, float]:
        """The requested noise scale of every entry, in its units, and of the number of rows."""
        self.rewind("indices")
        if isinstance(mechanism, Output):
            p = mechanism.parameters.p
            indices, count = mechanism.perturb(np.zeros((p, p))) / mechanism.step, None
        else:
            noisy = self._noise_only(mechanism)
            indices, count = noisy.gram, noisy.rows
        scales = np.array([np.nan, *(scale for _, scale, _ in self.rewind())])
        count_scale = np.inf if count is None else scales[count]
        return scales[np.rint(indices).astype(int)], count_scale

    def row_scales(self, mechanism: RowWise) -> Array:
        """The requested noise scale of every cell of a published row."""
        self.rewind("indices")
        zeros = np.zeros((mechanism.parameters.p, 1), dtype=np.int64)
        indices = mechanism.randomize(zeros)[:, 0]
        return np.array([np.nan, *(scale for _, scale, _ in self.rewind())])[indices]

    def large(self, mechanism: Mechanism) -> Any:
        """Noise alone, so large that rounding is negligible; see `requests` and `answers`."""
        self.rewind("large")
        return self._noise_only(mechanism)

    def wishart_scale(
        self, mechanism: Mechanism, dofs: Sequence[float], signs: Sequence[int]
    ) -> tuple[float, float]:
        """The noise scale of a sum of Wishart matrices (by Bartlett), and of the count."""
        noisy = self.large(mechanism)
        p = mechanism.parameters.p
        requests, answers = list(self.requests), list(self.answers)
        total = np.zeros((p, p))
        for dof, sign in zip(dofs, signs, strict=True):
            own, requests = requests[: p + 1], requests[p + 1 :]
            assert own[0] == ("gaussian", p * (p - 1) // 2)
            assert own[1:] == [("gamma", (dof - i) / 2, 1) for i in range(p)]
            factor = np.zeros((p, p))
            factor[np.tril_indices(p, -1)] = answers.pop(0)
            factor[np.diag_indices(p)] = [np.sqrt(2 * answers.pop(0)[0]) for _ in range(p)]
            total += sign * factor @ factor.T
            if len(dofs) == 1 and not mechanism.keeps_mean:  # type: ignore[attr-defined]
                total -= dof * np.eye(p)
        ratio = (noisy.gram / total)[np.triu_indices(p)]
        assert ratio == pytest.approx(ratio[0], rel=1e-5)
        if not mechanism.parameters.publishes_noisy_count:
            assert requests == []
            return float(ratio[0]), np.inf
        ((law, scale, _),) = requests
        assert law == "rounded_laplace"
        assert noisy.rows == answers[0][0]
        return float(ratio[0]), scale

    def _noise_only(self, mechanism: Mechanism) -> Any:
        assert isinstance(mechanism, Additive)
        p = mechanism.parameters.p
        return mechanism.perturb(np.zeros((p, p), dtype=np.int64), 0)

    def _play(self, law: str, *args: Any) -> Array:
        self.requests.append((law, *args))
        size = args[-1]
        if law == "gaussian":
            drawn = self._stream.normal(size=size)
        elif law == "gamma":
            large = 1e6 if self._mode == "large" else 1.0
            drawn = large * self._stream.gamma(args[0], size=size)
        elif self._mode == "indices":
            drawn = np.full(size, len(self.requests), dtype=np.int64)
        else:
            drawn = self._stream.integers(-1000, 1000, size=size)
        self.answers.append(drawn)
        return drawn
