"""Watches the sampler: noise is drawn for a charged release only, and once."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from gramercy.common.home import Home
from gramercy.ledger import Ledger
from gramercy.mechanisms.sampling import sampler
from gramercy.pipeline.publish import charging

Name = tuple[str, str, str]  # home, data set and release


class DrawMonitor:
    """Counts the draws of every release in this process, and notes what must not happen."""

    def __init__(self) -> None:
        self.draws: Counter[Name] = Counter()
        self.violations: list[str] = []
        self._permitted = 0

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Wrap the draw of a release, the sampler's bits, and its self-test."""
        draw_into, bits, self_test = charging.draw_into, sampler._bits, sampler.self_test

        def drawing(folder: Any, plan: Any, data: Any, release: str) -> Any:
            home = Home.default()
            self.note_draw((str(home.root), plan.contract.id, release))
            charge = Ledger.of(home).charge_of(plan.contract.id, release)
            state = charge.state if charge is not None else "not charged"
            if state != "drawn":
                self.violations.append(f"{release} is drawn when it is {state}")
            with self._permit():
                return draw_into(folder, plan, data, release)

        def testing() -> None:
            with self._permit():
                self_test()

        def drawn(*args: Any) -> Any:
            if not self._permitted:
                self.violations.append("noise outside of a release")
            return bits(*args)

        patch.setattr(charging, "draw_into", drawing)
        patch.setattr(sampler, "self_test", testing)
        patch.setattr(sampler, "_bits", drawn)

    def note_draw(self, name: Name) -> None:
        """Count a draw, of this process or another one."""
        self.draws[name] += 1
        if self.draws[name] > 1:
            self.violations.append(f"{name[1:]} is drawn {self.draws[name]} times")

    @contextlib.contextmanager
    def _permit(self) -> Iterator[None]:
        self._permitted += 1
        yield
        self._permitted -= 1
