"""``gramercy show``: describe one release."""

from __future__ import annotations

from gramercy.api.release import Release
from gramercy.application.context import Context
from gramercy.cli.options import AsJson, ReleaseName, split_name
from gramercy.cli.output import terminal
from gramercy.cli.output.phrases import attacker_text, concentrated_text, guarantee_text


def show(name: ReleaseName, json: AsJson = False) -> None:
    """Show a release: its guarantee, its noise and its files.

    Example: gramercy show clinic/2026-11-r1
    """
    release = Release(Context.default().archive, *split_name(name))
    facts = release.manifest
    if json:
        terminal.print_json(facts.model_dump(mode="json"))
        return
    noise, guarantee = facts.noise, facts.guarantee
    sd = f" ± {facts.rows.sd:.0f}" if facts.rows.status == "noisy" else ""
    mean = f", with mean {noise.mean:.3g} there" if noise.mean else ""
    terminal.say(terminal.bold(facts.dataset.title), f", version {facts.dataset.version}")
    terminal.say(facts.card["statement"] + "\n")
    terminal.facts_table(
        release.id,
        {
            "curator": facts.dataset.curator,
            "published": facts.published,
            "table": f"{facts.rows.value:.0f}{sd} {facts.count_key} ({facts.rows.status}) x "
            f"{len(facts.names)} columns",
            "neighbours": facts.card["neighbours"],
            "preprocessing": facts.card["pre_processing"],
            "mechanism": facts.card["mechanism"],
            "guarantee": guarantee_text(guarantee),
            "zero-concentrated": concentrated_text(guarantee),
            "best attacker": attacker_text(guarantee.power),
            "noise": f"sd {noise.sd_off_diagonal:.3g} off the diagonal, "
            f"{noise.sd_diagonal:.3g} on it{mean}",
            "estimates": ", ".join(release.estimates) or "none",
            "report": release.shown(page) if (page := release.report) else "none",
            "signed by": release.signed_by,
            "withdrawn": release.withdrawn or "no",
            "location": release.where,
        },
    )
