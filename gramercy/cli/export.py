"""``gramercy export``: the catalogue in public formats."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from gramercy.api.r_script import script_and_data
from gramercy.api.release import Release
from gramercy.archive.bundles.bundle_kinds import read_withdrawal
from gramercy.archive.export.data_package import CollectedRelease, write_collection
from gramercy.archive.export.registry_entry import (
    RegistryAnswers,
    entry_text,
    registry_entry,
)
from gramercy.archive.seal.bundle import SUMS, file_digest
from gramercy.archive.store.staging import StagingArea
from gramercy.cli import terminal
from gramercy.cli.history import timelines_of
from gramercy.cli.options import (
    ArchiveLocation,
    AsJson,
    ReleaseNames,
    archive_of_options,
    check_choice,
    check_output_folder,
    write_errors,
)
from gramercy.common import disk
from gramercy.pipeline.context import Context
from gramercy.pipeline.verify.verification import select_releases
from gramercy.schemas import families
from gramercy.schemas.deployments_registry import CURATOR_TYPES, SECTORS
from gramercy.schemas.errors import RequestError
from gramercy.schemas.ledger_history import Timeline

_STAGING, _OWNER = ".gramercy-staging", "package"


def _registry_fact_missing(option: str, meaning: str) -> RequestError:
    return families.EXPORT(
        "--registry requires {option}.", "State {meaning}.", option=option, meaning=meaning
    )


def export(
    names: ReleaseNames = None,
    registry: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Write entries for the OpenDP Deployments Registry here."
        ),
    ] = None,
    curator_type: Annotated[
        str | None, typer.Option(help="Registry: Government, Industry or Nonprofit.")
    ] = None,
    region: Annotated[
        str | None, typer.Option(help="Registry: region that the data describe.")
    ] = None,
    sector: Annotated[str | None, typer.Option(help="Registry: Healthcare, Education, ...")] = None,
    author: Annotated[
        list[str] | None,
        typer.Option(help="Registry: author of the entry; default: the curator. Repeatable."),
    ] = None,
    package: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write one data package of all releases here."),
    ] = None,
    r: Annotated[
        Path | None,
        typer.Option(
            "--r",
            metavar="FILE",
            help="Write a script for R that reads the numbers of one release, and the numbers "
            "next to it.",
        ),
    ] = None,
    archive: ArchiveLocation = None,
    key: Annotated[
        list[Path] | None, typer.Option(help="File of a curator's public key; repeatable.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Export the catalogue to a registry or as one data package, or a release to R.

    The registry is that of OpenDP Deployments; the package follows the Data Package standard, and
    has Croissant metadata.

    Example: gramercy export --registry entries --curator-type Nonprofit --region Berlin
    """
    if registry is None and package is None and r is None:
        raise families.EXPORT(
            "Nothing to export.", "Add --registry FOLDER, --package FOLDER or --r FILE."
        )
    _check_folders(registry, package)
    answers = (
        _registry_answers(curator_type, region, sector, author) if registry is not None else None
    )
    context = Context.default()
    store = archive_of_options(context, archive, key)
    ledger = context.existing_ledger if archive is None else None
    chosen = select_releases(store, ledger, names or [])
    if r is not None and len(chosen) != 1:
        raise families.EXPORT(
            "--r needs one release, and {number} are chosen.",
            "Name it: gramercy export DATASET/RELEASE --r {path}.",
            number=len(chosen),
            path=str(r),
        )
    releases, done = [], dict[str, Any]()
    for dataset, name in chosen:
        release, notice = Release(store, dataset, name), None  # its seal is verified
        if release.withdrawn is not None:
            notice = read_withdrawal(store.withdrawal(dataset, name)).manifest
        digest, signer = file_digest(release.path / SUMS), release.signed_by
        releases.append(CollectedRelease(release.manifest, digest, release.path, signer, notice))
        if r is not None:
            done["r"] = [str(each) for each in write_r_script(r, release)]
    done["releases"] = [each.id for each in releases]
    if package is not None:
        # Even the id of a data set is private until something of it is published.
        published = {each.manifest.dataset.id for each in releases}
        datasets = sorted(published & {*ledger.datasets()}) if ledger else []
        write_package(
            package, releases, list(timelines_of(ledger, store, datasets)) if ledger else None
        )
        done["package"] = str(package / "datapackage.json")
    if registry is not None and answers is not None:
        done["registry"] = [str(each) for each in write_registry(registry, releases, answers)]
    if json:
        terminal.print_json(done)
        return
    files = [*done.get("r", ()), *done.get("registry", ()), *([done["package"]] if package else [])]
    for path in files:
        terminal.say(path)


def _check_folders(registry: Path | None, package: Path | None) -> None:
    for option, folder in (("--registry", registry), ("--package", package)):
        if folder is not None:
            check_output_folder(option, folder)
    if registry is not None and package is not None:
        entries, files = registry.resolve(), package.resolve()
        if entries.is_relative_to(files) or files.is_relative_to(entries):
            raise families.EXPORT(
                "--registry and --package must be different folders, neither inside the other.",
                "Choose two folders.",
            )


def _registry_answers(
    curator_type: str | None, region: str | None, sector: str | None, authors: list[str] | None
) -> RegistryAnswers:
    """What the registry requires and no release records."""
    if not curator_type:
        kinds = ", ".join(CURATOR_TYPES)
        raise _registry_fact_missing("--curator-type", f"one of {kinds}")
    check_choice("--curator-type", curator_type, CURATOR_TYPES)
    if sector is not None:
        check_choice("--sector", sector, SECTORS)
    if region is None or not region.strip():
        raise _registry_fact_missing("--region", "the region that the data describe")
    return RegistryAnswers(curator_type, region, sector, tuple(filter(None, authors or ())))  # type: ignore[arg-type]


def write_r_script(path: Path, release: Release) -> tuple[Path, Path]:
    """Write a script for R, and the numbers that it reads next to it."""
    data = path.with_name(f"{path.name}.json")
    script, numbers = script_and_data(release, data.name)
    with write_errors("--r", path):
        disk.write_atomically(data, numbers.encode())
        disk.write_atomically(path, script.encode())
    return path, data


def write_registry(
    folder: Path, releases: Sequence[CollectedRelease], answers: RegistryAnswers
) -> list[Path]:
    """Write an entry of the OpenDP Deployments Registry for each release; keep other files."""
    entries = [registry_entry(e.manifest, e.sha256, answers, e.withdrawn) for e in releases]
    paths = [folder / (each.url_slug.replace("-", "_") + ".yaml") for each in entries]
    with write_errors("--registry", folder):
        folder.mkdir(parents=True, exist_ok=True)
        for path, entry in zip(paths, entries, strict=True):
            disk.write_atomically(path, entry_text(entry).encode())
    return paths


def write_package(
    folder: Path, releases: Sequence[CollectedRelease], timelines: Sequence[Timeline] | None
) -> None:
    """Write one data package of all releases next to its folder, and move it there.

    What an export that was killed has left there is removed.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise families.EXPORT(
            "--package: {path} is not an empty folder.", "Choose a new folder.", path=str(folder)
        )
    target = folder.resolve()
    area = StagingArea(target.with_name(_STAGING))
    area.sweep(_OWNER)
    with write_errors("--package", folder):
        try:
            with area.new(_OWNER) as staging:
                write_collection(staging, releases, timelines)
                staging.replace(target)
        finally:
            with contextlib.suppress(OSError):  # another export uses it
                area.folder.rmdir()
