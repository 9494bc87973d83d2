"""Mechanisms that could answer a request, ranked by their error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from gramercy.application.ranking import Declined, Offer
from gramercy.application.request_model import Request
from gramercy.cli.output.terminal import bold, out, say


def ranking_facts(
    offers: Sequence[Offer], declined: Sequence[Declined], delta: float
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
            for each in offers
        ],
        "declined": {each.name: each.why for each in declined},
    }


def ranking_text(request: Request, offers: Sequence[Offer], declined: Sequence[Declined]) -> None:
    """Print a ranking of mechanisms."""
    delta = request.mechanism.delta
    title = "Noise in Frobenius norm at this guarantee, before any repair"
    columns = ("mechanism", "error", "times the least", "costs mu", f"epsilon at {delta:g}")
    table = Table(*columns, "arithmetic", "publishes", title=Text(title), title_justify="left")
    table.box = None
    for each in offers:
        table.add_row(
            bold(each.name) if each.name == request.mechanism.name else each.name,
            f"{each.error:.3g}",
            f"{each.error / offers[0].error:.3g}",
            f"{each.guarantee.mu:.4g}",
            f"{each.guarantee.epsilon(delta):.4g}",
            each.arithmetic,
            each.publishes,
        )
    out.print(table)
    for other in declined:
        say(Text(f"  not {other.name}: ", style="dim"), other.why)
