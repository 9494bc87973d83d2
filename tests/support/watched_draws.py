"""Imported by a process of releases: lists every draw of noise, and lets planned faults happen.

The variables ``DRAWS`` and ``FAULTS`` name a file and a folder: a fault in a file with the name of
a data set befalls its next release.
"""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

from gramercy.pipeline.publish import charging, drawing
from tests.support.faults.kill_points import KillPoints, die, fail

_draw, _lock = drawing.draw_into, charging.locked_request


@functools.wraps(_draw)
def _draw_into(folder: Path, plan: Any, data: Any, release: str) -> Any:
    line = f"{plan.contract.id}/{release}\n".encode()
    with open(os.environ["DRAWS"], "ab", buffering=0) as draws:
        draws.write(line)
    return _draw(folder, plan, data, release)


@functools.wraps(_lock)
def _locked_request(context: Any, plan: Any) -> Any:
    fault = Path(os.environ["FAULTS"], plan.contract.id)
    if fault.exists():
        facts = json.loads(fault.read_text())
        fault.unlink()
        act = fail(facts["errno"]) if facts["errno"] else die
        KillPoints(lambda *_: None, (facts["at"], 1), act, lasting=True).install()
    return _lock(context, plan)


vars(charging).update(draw_into=_draw_into, locked_request=_locked_request)
