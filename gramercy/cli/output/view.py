"""How results look on a terminal."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from gramercy.application.planning import Outlook, Plan, effect
from gramercy.application.ranking import Declined, Offer
from gramercy.application.request_model import Request
from gramercy.ledger import Charge, Raise, Statement
from gramercy.mechanisms.accounting.guarantee import Guarantee
from gramercy.schemas.manifest import GuaranteeFacts
from gramercy.schemas.request import AnyNormalisation, Clip

# Into a file or a pipe there is no width to ask for.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
err = Console(highlight=False, width=None if sys.stderr.isatty() else 110, stderr=True)


def as_json(facts: Any) -> None:
    """Print plain data as JSON."""
    print(json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False))


def say(*parts: str | Text, to: Console = out) -> None:
    """Print text as it is: names may hold brackets, which are no markup."""
    to.print(Text.assemble(*parts), soft_wrap=not to.is_terminal)


def bold(text: str) -> Text:
    """Emphasised text."""
    return Text(text, style="bold")


def note(text: str) -> None:
    """Tell the steward something, on the terminal and nowhere else."""
    say(Text("Note for the steward: ", style="yellow"), text, to=err)


def steward_notes(internal: Mapping[str, Any]) -> None:
    """What the steward should know of the private table; to a terminal, and nowhere else."""
    if not err.is_terminal:
        return
    if internal.get("table_changed_since"):
        note(
            "the files have changed since this version was published. A new version is a new "
            "release, and a new charge."
        )
    found, declared = internal.get("persons"), internal.get("persons_declared")
    if found != declared:
        note(
            f"the table has {found} persons and the contract's 'persons' is {declared}. The "
            "guarantee holds, but averages are off by that ratio: correct names or contract."
        )
    for key, words in (
        ("filled_cells", "were missing, no number or no level, and took the centre or no level"),
        ("clamped_cells", "were out of bounds, and were clamped"),
    ):
        counts = {name: count for name, count in internal.get(key, {}).items() if count}
        if counts:
            worst = sorted(counts, key=counts.__getitem__, reverse=True)
            listed = ", ".join(f"{name} ({counts[name]})" for name in worst[:5])
            more = f" and {len(worst) - 5} more columns" if worst[5:] else ""
            note(f"cells {words}: {listed}{more}.")
    if lines := internal.get("malformed_rows"):
        note(
            f"{lines} lines are blank, broken or of the wrong width, and counted as rows of zeros."
        )


def facts_table(title: str, facts: Mapping[str, str | Text]) -> None:
    """Print names and values."""
    table = Table(title=Text(title), title_justify="left", show_header=False, box=None)
    for name, value in facts.items():
        table.add_row(
            Text(f"  {name}", style="dim"), Text(value) if isinstance(value, str) else value
        )
    out.print(table)


def plan_text(plan: Plan, seen: Outlook) -> None:
    """Print what a release will do."""
    facts, law = plan.facts(), plan.law
    n_known = "public" if plan.contract.neighbours == "replace-one" else "planning figure"
    facts_table(
        f"Release of {plan.contract.id}, version {plan.request.version}",
        {
            "table": f"{plan.contract.count} {plan.contract.count_key} ({n_known}) x "
            f"{plan.columns} columns",
            "protects": f"one {plan.contract.protects}, {plan.contract.neighbours}",
            "rows": normalisation(plan.request.normalisation),
            "publishes": PUBLISHES[plan.mechanism.publishes] + _folds(plan.request.folds),
            "mechanism": f"{plan.mechanism.name}, {plan.mechanism.arithmetic} arithmetic",
            **{
                f"  {name.replace('_', ' ')}": f"{value:.6g}"
                for name, value in plan.mechanism.plan().items()
            },
            "guarantee": guarantee_text(facts),
            "best attacker": attacker_text(facts["power"], plan.contract.protects),
            "error of an entry": (
                f"sd {law.sd_off_diagonal:.3g} off the diagonal, {law.sd_diagonal:.3g} on it"
                + ("" if law.family != "noisy-rows" else ", about")
            ),
            **_in_proportion(plan),
            "error of the matrix": f"{plan.matrix_error:.3g} in Frobenius norm, before repair",
            **_effect(plan, seen),
            **({"same table": Text(shared_words(seen.shared), style="red")} if seen.shared else {}),
        },
    )


def shared_words(shared: Sequence[str]) -> str:
    """A warning about data sets whose budgets protect the same rows apart."""
    return f"also read as {', '.join(shared)}: budgets of different ids do not add up; use one id"


def _in_proportion(plan: Plan) -> dict[str, str]:
    """The error of an entry beside an entry, where the public knows how large that is."""
    if plan.share_of_entry is None:
        return {}
    words = f"{100 * plan.share_of_entry:.3g} % of an average diagonal entry"
    return {"  in proportion": f"{words}, which is 1/{plan.columns}: the rows have length 1"}


PUBLISHES = {
    "second-moment": "a noisy second moment",
    "rows": "noisy rows, and the second moment that follows from them",
    "reports": "one noisy report a row, and their average",
    "precision": "a noisy precision matrix",
}


def _folds(folds: int) -> str:
    return f", in {folds} folds with noise of their own" if folds > 1 else ""


def guarantee_text(facts: Mapping[str, Any]) -> str:
    """A guarantee in one line."""
    at = f"epsilon {facts['epsilon']:.6g} at delta {facts['delta']:g}"
    failing = f" but for probability {facts['delta0']:.2g}" if facts["delta0"] else ""
    return f"{at}; {facts['mu']:.6g}-GDP{failing}"


def attacker_text(power: float, unit: str) -> str:
    """How a guarantee reads as a hypothesis test."""
    return f"finds {100 * power:.3g} {unit}s of 100, at 5 false alarms in 100"


def concentrated_text(guarantee: GuaranteeFacts) -> str:
    """A guarantee as zero-concentrated differential privacy."""
    if guarantee.rho is None:
        return "none"
    failing = f" but for probability {guarantee.rho_failure:.2g}" if guarantee.rho_failure else ""
    return f"rho {guarantee.rho:.4g}{failing}"


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


def mechanisms_text(known: Sequence[Mapping[str, Any]]) -> None:
    """Print the mechanisms."""
    table = Table("mechanism", "what it is for", "publishes", "neighbours", "arithmetic", box=None)
    for each in known:
        table.add_row(
            bold(each["name"]),
            each["summary"],
            each["publishes"],
            ", ".join(each["neighbours"]),
            each["arithmetic"],
        )
    out.print(table)


def _effect(plan: Plan, seen: Outlook) -> dict[str, str | Text]:
    """What the release would do to the budget, in words."""
    before, found = seen.before, effect(plan, seen)
    if found.kind != "charged":
        style = "green" if found.kind == "free" else "red"
        return {"budget": _budget(before), "effect": Text(found.words, style=style)}
    after = before.after(plan.guarantee)
    more = f"{_budget(after)} ({after.times(plan.guarantee)} more like this one)"
    return {"budget before": _budget(before), "budget after": more}


def plan_facts(plan: Plan, seen: Outlook) -> dict[str, Any]:
    """A plan and its effect on the budget as plain data."""
    before, answered = seen.before, seen.answered
    replayed = answered is not None and answered.state == "published"
    after = before if replayed else before.after(plan.guarantee)
    return plan.facts() | {
        "published_as": answered.release if answered and replayed else None,
        "admitted": replayed or before.admits(plan.guarantee),
        "budget_before": statement_facts(plan.contract.id, before),
        "budget_after": statement_facts(plan.contract.id, after),
        "more_like_this": after.times(plan.guarantee),
        "same_table_as": list(seen.shared),
    }


def verified_text(facts: Mapping[str, Any]) -> None:
    """Print what was checked of a release, or what is wrong with it."""
    say(bold(facts["release"]))
    for words in facts.get("checks", ()):
        say(Text("  ✓ ", style="green"), words)
    for words in facts.get("unchecked", ()):
        say(Text("  ? ", style="yellow"), words)
    if "error" in facts:
        say(Text("  ✗ ", style="red"), facts["error"])


def statement_facts(
    dataset: str,
    statement: Statement,
    raises: Sequence[Raise] = (),
    charges: Sequence[Charge] = (),
    shared: Sequence[str] = (),
) -> dict[str, Any]:
    """A budget statement as plain data."""
    return {
        "dataset": dataset,
        **statement.facts(),
        "same_table_as": list(shared),
        "budgets": [{**r.budget.model_dump(), "reason": r.reason, "at": r.at} for r in raises],
        "charges": [charge.facts() for charge in charges],
    }


def statement_text(
    dataset: str,
    statement: Statement,
    raises: Sequence[Raise],
    charges: Sequence[Charge],
    shared: Sequence[str] = (),
    planned: Guarantee | None = None,
) -> None:
    """Print a budget statement, with a bar of what is spent and what a planned release takes."""
    of = f", data of {statement.window}" if statement.window else ""
    say(bold(dataset + of), "  ", _bar(statement, planned), "\n", _budget(statement))
    if planned is not None:
        fits = statement.admits(planned)
        after = _budget(statement.after(planned)) if fits else "it does not fit, and is refused"
        say(Text("planned: ", style="cyan"), after)
    if shared:
        say(Text("same table: ", style="red"), shared_words(shared))
    for each in raises[1:]:
        to = f"epsilon {each.budget.epsilon:g}, delta {each.budget.delta:g}"
        say(f"changed to {to} on {each.at.partition('T')[0]}: {each.reason}")
    if charges:
        out.print(_charges_table(statement, charges))
    if len(charges) > _SHOWN:
        say(f"... the last {_SHOWN} of {len(charges)}; --json has all.")


_BAR, _SHOWN = 30, 30


def _bar(statement: Statement, planned: Guarantee | None = None) -> Text:
    """How much of the budget is spent, planned and left."""
    filled = math.ceil(_BAR * statement.share)
    after = statement.after(planned).share if planned else 0.0
    wanted = max(0, math.ceil(_BAR * after) - filled)
    bar = Text("█" * filled, style="yellow").append("▒" * wanted, style="cyan")
    return bar.append("░" * (_BAR - filled - wanted), style="dim")


def _charges_table(statement: Statement, charges: Sequence[Charge]) -> Table:
    """The last charges, each with what was spent after it."""
    budget, first = statement.budget, max(0, len(charges) - _SHOWN)
    columns = ("release", "version", "mu", f"epsilon at {budget.delta:g}", "spent after it")
    table = Table(*columns, "state", "charged", box=None)
    running = Statement(budget)
    for place, c in enumerate(charges):
        running = running.after(c.guarantee)
        if place < first:
            continue
        table.add_row(
            c.release,
            c.version,
            f"{c.guarantee.mu:.4g}",
            f"{c.guarantee.epsilon(budget.delta):.4g}",
            Text(f"{running.spent:.4g} ").append(
                "▪" * math.ceil(10 * running.share), style="yellow"
            ),
            c.state,
            c.at.partition("T")[0],
        )
    return table


def change_text(facts: Mapping[str, Any], page: Path | None) -> None:
    """Print what changed between two releases."""
    say(bold(facts["earlier"]), " and ", bold(facts["later"]))
    chance = facts["by_chance"]
    expected = "" if chance is None else f"; {chance:.2g} would if nothing had changed"
    say(
        f"{facts['beyond']} of {facts['entries']} entries differ by more than two standard "
        f"deviations of the noise{expected}."
    )
    if facts["p_value"] is not None:
        say(f"All together: p = {facts['p_value']:.2g}.")
    table = Table("column", "with", "change", "standard error", "deviations", box=None)
    for row, col, value, sd, away in facts["strongest"]:
        table.add_row(row, col, f"{value:.3g}", f"{sd:.2g}", f"{away:.3g}")
    out.print(table)
    if page is not None:
        say(f"Page: {page}")


def audit_text(found: Mapping[str, Any], page: Path) -> None:
    """Print what an audit found."""
    wrong = found["discrepancies"]
    for each in found["releases"]:
        # What is wrong with it is said below.
        sign = Text("  ✗ ", style="red") if each["bundle"] == "wrong" else Text("  ✓ ", "green")
        say(sign, each["release"], Text(f"  {each['state']}; {each['bundle']}", style="dim"))
    for each in found["notes"]:
        say(Text("Note: ", style="yellow"), each)
    for each in wrong:
        say(Text("Discrepancy: ", style="red"), bold(each["subject"]), f": {each['words']}")
    entries, charges = found["head"]["seq"], len(found["releases"])
    words = f"{entries} entries of the ledger, {charges} charges: "
    say(words, bold("everything agrees." if not wrong else f"{len(wrong)} discrepancies."))
    say(f"Report: {page}")


@contextlib.contextmanager
def doing(what: str, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Say on the terminal what is being done; to be called with the name of each in turn."""
    with err.status(f"{what} ...") if err.is_terminal and not quiet else _silence() as status:
        yield lambda name: status.update(Text(f"{what} {name} ...")) if status else None


def _silence() -> contextlib.nullcontext[None]:
    return contextlib.nullcontext()


def panel(title: str, facts: Mapping[str, str], *lines: str) -> None:
    """Print a framed message: facts by name, then lines."""
    text = Text()
    for name, value in facts.items():
        text.append(f"{name:<11}", style="bold").append(f"{value}\n")
    text.append("\n".join(lines))
    out.print(Panel(text, title=title, title_align="left", expand=False, padding=1))


def normalisation(how: AnyNormalisation) -> str:
    """What is done to every row, in short."""
    if isinstance(how, Clip):
        return f"rows clipped at {how.radius:g}"
    return {"unit": "unit rows", "box": "rows within their bounds"}.get(how.kind, "whole numbers")


def _budget(statement: Statement) -> str:
    budget = statement.budget
    return (
        f"epsilon {statement.spent:.4g} of {budget.epsilon:g} spent at delta {budget.delta:g}; "
        f"{statement.remaining:.4g} left for one more release{_failures(statement)}"
    )


def _failures(statement: Statement) -> str:
    """What mechanisms that may fail have taken of the share that is set aside for them."""
    spent = statement.total.delta0
    return f"; failures: {spent:.3g} of {statement.budget.failures:g}" if spent else ""
