"""A release as an entry of the OpenDP Deployments Registry, from its manifest and DP card."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.representer import RoundTripRepresenter

from gramercy.archive.bundles.card import content_summary, noise_description
from gramercy.schemas.deployments_registry import (
    Administrative,
    Basic,
    Curator,
    CuratorType,
    Deployment,
    DeploymentModel,
    Implementation,
    Loss,
    Parameters,
    RegistryEntry,
    Sector,
    Variant,
)
from gramercy.schemas.manifest import ReleaseManifest, WithdrawalManifest

_VERSION = "%YAML 1.1\n---\n"


@dataclass(frozen=True)
class RegistryAnswers:
    """Facts that the registry requires and that no release states."""

    curator_type: CuratorType  # Kind of organisation that the curator is
    region: str  # Region that the data describe
    sector: Sector | None = None  # Industry; None leaves the field out
    authors: tuple[str, ...] = ()  # Authors of the entry; if empty, the curator


def registry_entry(
    manifest: ReleaseManifest,
    sha256: str,
    stated: RegistryAnswers,
    withdrawn: WithdrawalManifest | None,
) -> RegistryEntry:
    """The entry of a release."""
    basic = _basic(manifest, stated, withdrawn)
    card = manifest.card
    public = manifest.rows.status == "public"
    cells = len(manifest.columns) if manifest.privacy_unit == "cell" else 1
    grows = manifest.cumulative is not None
    series = f": {card['series']}" if grows else ""
    dataset, local = manifest.dataset, manifest.mechanism["name"] == "local"
    return RegistryEntry(
        url_slug=f"{manifest.dataset.id}--{_plain(manifest.release)}",
        deployment=Deployment(
            basic=basic,
            dp_variant=Variant(
                variant_name="Approximate DP"
                if manifest.guarantee.pure_epsilon is None
                else "Pure DP",
                data_domain=card["data_domain"],
                unprotected_quantities="public constants of the data set's contract: names of "
                "columns, their bounds, centres, scales and levels"
                + (f"; the number of {manifest.count_key}" if public else ""),
            ),
            privacy_loss=Loss(
                privacy_unit=manifest.privacy_unit.capitalize(),
                privacy_unit_details=f"{card['unit']}: {card['neighbours']}",
                number_of_privacy_units=cells * round(manifest.rows.value),
                privacy_parameters=_parameters(manifest),
                privacy_parameters_details=card["statement"],
            ),
            deployment_model=DeploymentModel(
                model_name="Local" if local else "Central",
                trust_assumptions=manifest.card["trust_model"],
                release_type="Many releases" if grows else "One release",
                release_type_details=f"Release {manifest.release} of the data set {dataset.id}"
                f"{series}. All releases that protect the same records share one budget.",
                data_source_type="Dynamic" if grows else "Static",
                data_source_type_details=f"Version {dataset.version} of the data"
                + (", which grow by a part with every release." if grows else "."),
                access_type="Non-interactive",
                access_type_details="Files, from which anyone may compute anything.",
            ),
            implementation=_implementation(manifest, sha256),
            administrative=Administrative(
                status="Draft",
                registry_authors=stated.authors or (manifest.dataset.curator,),
                tier=3,
            ),
        ),
    )


def entry_text(entry: RegistryEntry) -> str:
    """The entry as YAML with the same meaning in versions 1.1 and 1.2."""
    yaml = YAML()
    yaml.version = (1, 1)  # quotes 'no' and 2026-01-01, which version 1.1 does not read as text
    yaml.width = 1_000_000  # do not fold lines: folding leaves blanks at their ends
    yaml.Representer = _Representer
    text = io.StringIO()
    yaml.dump(entry.model_dump(mode="json", exclude_none=True), text)
    return text.getvalue().removeprefix(_VERSION)


class _Representer(RoundTripRepresenter):
    """Writes 1e-06 as 1.0e-06, because YAML 1.1 reads the former as text."""

    def represent_float(self, number: float) -> Any:
        text = repr(number)
        dotted = text if "." in text else text.replace("e", ".0e")
        return self.represent_scalar("tag:yaml.org,2002:float", dotted)


_Representer.add_representer(float, _Representer.represent_float)


def _plain(release: str) -> str:
    """A release id as part of a link; its counter makes it unique within the data set."""
    return re.sub(r"[^a-z0-9]+", "-", release.lower())


def _basic(
    manifest: ReleaseManifest, stated: RegistryAnswers, withdrawn: WithdrawalManifest | None
) -> Basic:
    dataset, card = manifest.dataset, manifest.card
    warning = ""
    if withdrawn is not None:
        warning = f"Withdrawn by its curator on {withdrawn.date}; it should no longer be used: "
        warning += f"{withdrawn.reason.rstrip('.')}. "
    rows = bool(manifest.publication.rows_file)
    return Basic(
        name=f"{dataset.title}, version {dataset.version}" + (" (withdrawn)" if withdrawn else ""),
        data_curators=(
            Curator(data_curator_name=card["curator"], data_curator_type=stated.curator_type),
        ),
        description=warning + content_summary(manifest),
        intended_use=card["intended_use"],
        data_product_type="Dataset" if rows else "Summary statistics",
        data_product_region=stated.region,
        data_product_sector=stated.sector,
        publication_date=manifest.published,
    )


def _parameters(manifest: ReleaseManifest) -> Parameters:
    """The parameters of the named variant; the statement adds the others in words."""
    guarantee = manifest.guarantee
    if guarantee.pure_epsilon is not None:
        return Parameters(epsilon=_rounded_up(guarantee.pure_epsilon))
    return Parameters(epsilon=_rounded_up(guarantee.epsilon), delta=guarantee.delta)


def _rounded_up(number: float) -> float:
    """To six significant digits: the guarantee is also valid with a larger epsilon."""
    stated = Decimal(repr(number))
    digits = Decimal(1).scaleb(stated.adjusted() - 5)
    return float(stated.quantize(digits, ROUND_CEILING))


def _implementation(manifest: ReleaseManifest, sha256: str) -> Implementation:
    card, dataset = manifest.card, manifest.dataset
    software = ", ".join(f"{name} {version}" for name, version in manifest.software.items())
    settings = ", ".join(f"{key} {value}" for key, value in manifest.mechanism.items())
    folds = "" if card["folds"] == "none" else f" Folds: {card['folds']}."
    return Implementation(
        preprocessing_and_hyperparameter_tuning=card["pre_processing"],
        mechanisms=f"{card['mechanism']}. Software: {software}.",
        composition=card["accounting"] + "." + folds,
        post_processing=card["post_processing"],
        justification=f"The curator requested: {settings}. The noise follows from these settings, "
        "and the stated guarantee is the exact guarantee of that noise, rounded up. The reasons "
        "for these settings are not on record.",
        utility=noise_description(manifest),
        additional_information=f"Release {dataset.id}/{manifest.release}. Its bundle is signed; "
        f"the SHA-256 of its SHA256SUMS is {sha256}. 'gramercy verify' recomputes its guarantee.",
    )
