"""``gramercy show``: describe one release."""

from __future__ import annotations

from rich.text import Text

from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import ReleaseBundle, read_release
from gramercy.cli import terminal
from gramercy.cli.options import (
    ArchiveLocation,
    AsJson,
    PublicKeys,
    ReleaseName,
    archive_of_options,
    split_name,
)
from gramercy.cli.release_limits import limits_facts
from gramercy.cli.terminal import attacker_text, guarantee_text, verdict_text
from gramercy.pipeline.context import Context
from gramercy.reports.reader_notes import verdict_note
from gramercy.schemas.errors import printable
from gramercy.schemas.manifest import ReleaseManifest


def show(
    name: ReleaseName, archive: ArchiveLocation = None, key: PublicKeys = None, json: AsJson = False
) -> None:
    """Show a release: its guarantee, its noise, its verdict and what limits its numbers.

    With --json: its manifest, with the verdict and the caveats.

    Example: gramercy show clinic/2026-11-r1 --archive https://example.org/archive
    """
    release = Release(archive_of_options(Context.default(), archive, key), *split_name(name))
    facts = release.manifest
    bundle = read_release(release.path)
    if json:
        limits = limits_facts(bundle, release.warnings)
        terminal.print_json(facts.model_dump(mode="json") | limits)
        return
    guarantee = facts.guarantee
    concentrated = "none"
    if guarantee.rho is not None:
        failing = guarantee.rho_failure
        but = f", except with probability {failing:.2g}" if failing else ""
        concentrated = f"rho={guarantee.rho:.4g}{but}"
    sd = f" ± {facts.rows.sd:.0f}" if facts.rows.status == "noisy" else ""
    columns = len(facts.names if facts.publication.has_matrix else facts.columns)
    terminal.say(
        terminal.bold(printable(facts.dataset.title)), f", version {facts.dataset.version}"
    )
    terminal.say(facts.card["statement"] + "\n")
    terminal.facts_table(
        release.id,
        {
            "curator": printable(facts.dataset.curator),
            "published": facts.published,
            "table": f"{facts.rows.value:.0f}{sd} {facts.count_key} ({facts.rows.status}) x "
            f"{columns} columns",
            **({"series": facts.cumulative.in_words} if facts.cumulative else {}),
            **({"source": facts.card["source"]} if "source" in facts.card else {}),
            **({"groups": facts.card["groups"]} if facts.groups else {}),
            "neighbours": facts.card["neighbours"],
            "preprocessing": facts.card["pre_processing"],
            "mechanism": facts.card["mechanism"],
            "guarantee": guarantee_text(guarantee),
            "zero-concentrated": concentrated,
            "best attacker": attacker_text(guarantee.power),
            **_directions(facts),
            "noise": _noise(bundle),
            **_verdict(bundle),
            "estimates": ", ".join(release.estimates) or "none",
            "report": release.shown(page) if (page := release.report) else "none",
            "signed by": release.signed_by,
            "withdrawn": release.withdrawn or "no",
            "location": release.where,
        },
    )
    if release.warnings:
        shown = {
            printable(f"{each.column or 'release'}: {each.kind}"): str(each.notice)
            for each in release.warnings
        }
        terminal.say("")
        terminal.facts_table("caveats", shown)


def _verdict(bundle: ReleaseBundle) -> dict[str, Text]:
    note = verdict_note(bundle)
    if note is None:
        return {}
    verdict = note.described()
    return {"verdict": verdict_text(verdict["level"], verdict["code"], verdict["text"])}


def _directions(facts: ReleaseManifest) -> dict[str, str]:
    """Whether the matrix was drawn in the metric of a pilot, if there is one."""
    if facts.scaling is None or not facts.states_metric:
        return {}
    pilot = "the pilot" if facts.scaling.pilot else f"the pilot of {facts.scaling.release}"
    if facts.is_whitened:
        return {"directions": f"the matrix was drawn in the metric of {pilot}"}
    return {"directions": f"{pilot} showed none worth it: the matrix was drawn without a metric"}


def _noise(bundle: ReleaseBundle) -> str:
    """The size of the noise."""
    facts = bundle.manifest
    if not facts.publication.has_matrix:
        return f"sd {facts.calibration.constants['scale']:.3g} on a count of the last stage"
    noise = bundle.evidence.law
    mean = f", with mean {facts.noise.mean:.3g} there" if facts.noise.mean else ""
    average = ", on average" if facts.is_whitened else ""
    return (
        f"sd {noise.sd_off_diagonal:.3g} off the diagonal, {noise.sd_diagonal:.3g} on it"
        f"{mean}{average}"
    )
