"""Run what a Prefect server has scheduled: ``python -m gramercy.flows.run``, started by a worker.

It replaces Prefect's own program, which loads the code that a deployment names: anyone who may
write to the server could name theirs. Here the server chooses among five flows, and their
parameters are checked by `flows.untrusted`.
"""

from __future__ import annotations

import gc
import os
import signal
from importlib import import_module
from typing import Any
from uuid import UUID

_FLOWS = ("release", "estimate", "report", "audit", "status")
_TIMED = {"estimate", "report"}


def main() -> None:
    """Run the flow of the run that the variable ``PREFECT__FLOW_RUN_ID`` names."""
    gc.disable()  # the imports make a million objects, which stay
    from prefect import get_client
    from prefect.engine import handle_engine_signals
    from prefect.flow_engine import run_flow
    from prefect.states import Failed

    from gramercy.flows.untrusted import estimate_minutes
    from gramercy.schemas import families

    run_id = UUID(os.environ["PREFECT__FLOW_RUN_ID"])
    with handle_engine_signals(run_id):
        with get_client(sync_client=True) as client:
            flow_run = client.read_flow_run(run_id)
            name = client.read_flow(flow_run.flow_id).name
            if name not in _FLOWS:
                state: Any = Failed(
                    message=str(
                        families.DEPLOYMENT(
                            "A worker of Gramercy runs these flows only: {flows}.",
                            "Deploy one of them, as prefect.yaml does.",
                            flows=_FLOWS,
                        )
                    )
                )
                client.set_flow_run_state(run_id, state, force=True)
                return
        flow = getattr(import_module(f"gramercy.flows.{name}"), name)
        gc.freeze()
        gc.enable()
        if name in _TIMED:
            # The kernel ends the process, even while compiled code runs.
            signal.setitimer(signal.ITIMER_REAL, 60 * estimate_minutes())
        # A state, because a result could be loaded from where the server says.
        run_flow(flow, flow_run=flow_run, return_type="state")


if __name__ == "__main__":
    main()
