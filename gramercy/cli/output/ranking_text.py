"""Mechanisms that can answer a request, ranked by their error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from gramercy.cli.output import terminal
from gramercy.cli.output.terminal import bold, say
from gramercy.pipeline.plan.ranking import RankedMechanism, UnsuitableMechanism
from gramercy.pipeline.plan.request_model import Request


def ranking_facts(
    ranked: Sequence[RankedMechanism], unsuitable: Sequence[UnsuitableMechanism], delta: float
) -> dict[str, Any]:
    """A ranking of mechanisms as plain data."""
    return {
        "ranking": [
            {
                "mechanism": each.name,
                "publishes": each.publishes,
                "arithmetic": each.arithmetic,
                "matrix_error": each.error,
                "sd_off_diagonal": each.law.sd_off_diagonal,
                "mu": each.guarantee.mu,
                "delta0": each.guarantee.delta0,
                "epsilon": each.guarantee.epsilon(delta),
                "delta": delta,
            }
            for each in ranked
        ],
        "declined": {each.name: each.reason for each in unsuitable},
    }


def print_ranking(
    request: Request, ranked: Sequence[RankedMechanism], unsuitable: Sequence[UnsuitableMechanism]
) -> None:
    """Print a ranking of mechanisms."""
    delta = request.mechanism.delta
    title = "Frobenius norm of the noise at this guarantee, before any repair"
    columns = ("mechanism", "error", "relative", "mu", f"epsilon at delta={delta:g}")
    table = Table(*columns, "arithmetic", "publishes", title=Text(title), title_justify="left")
    table.box = None
    for each in ranked:
        table.add_row(
            bold(each.name) if each.name == request.mechanism.name else each.name,
            f"{each.error:.3g}",
            f"{each.error / ranked[0].error:.3g}",
            f"{each.guarantee.mu:.4g}",
            f"{each.guarantee.epsilon(delta):.4g}",
            each.arithmetic,
            each.publishes,
        )
    terminal.out.print(table)
    for mechanism in unsuitable:
        say(Text(f"  not {mechanism.name}: ", style="dim"), mechanism.reason)
