"""A release as an entry of the OpenDP Deployments Registry, from its manifest and DP card."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.representer import RoundTripRepresenter

from gramercy.archive.card import contents, noise_words
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
class Stated:
    """What the registry asks for, and no release says.

    Parameters
    ----------
    curator_type
        What kind of body the curator is.
    region
        Which region the data describe.
    sector
        Which industry; None is left out.
    authors
        Who made the entry; none: the curator.
    """

    curator_type: CuratorType
    region: str
    sector: Sector | None = None
    authors: tuple[str, ...] = ()


def registry_entry(
    manifest: ReleaseManifest, sha256: str, stated: Stated, withdrawn: WithdrawalManifest | None
) -> RegistryEntry:
    """The entry of a release.

    Parameters
    ----------
    manifest, sha256
        The release, and the digest of its SHA256SUMS.
    stated
        What else the registry asks for.
    withdrawn
        The notice that it was withdrawn, if there is one.
    """
    basic = _basic(manifest, stated, withdrawn)
    card = manifest.card
    public = manifest.rows.status == "public"
    cells = len(manifest.columns) if manifest.unit == "cell" else 1
    return RegistryEntry(
        url_slug=f"{manifest.dataset.id}--{_plain(manifest.release)}",
        deployment=Deployment(
            basic=basic,
            dp_variant=Variant(
                variant_name="Approximate DP" if manifest.guarantee.pure is None else "Pure DP",
                data_domain=card["data_domain"],
                unprotected_quantities="public constants of the data set's contract: names of "
                "columns, their bounds, centres, scales and levels"
                + (f"; the number of {manifest.count_key}" if public else ""),
            ),
            privacy_loss=Loss(
                privacy_unit=manifest.unit.capitalize(),
                privacy_unit_details=f"{card['unit']}: {card['neighbours']}",
                number_of_privacy_units=cells * round(manifest.rows.value),
                privacy_parameters=_parameters(manifest),
                privacy_parameters_details=card["statement"],
            ),
            deployment_model=_model(manifest),
            implementation=_implementation(manifest, sha256),
            administrative=Administrative(
                status="Draft",
                registry_authors=stated.authors or (manifest.dataset.curator,),
                tier=3,
            ),
        ),
    )


def file_name(entry: RegistryEntry) -> str:
    """As the registry wants it: lower case letters, digits and underscores."""
    return entry.url_slug.replace("-", "_") + ".yaml"


def entry_text(entry: RegistryEntry) -> str:
    """The entry as YAML, which readers of version 1.1 and of 1.2 understand alike."""
    yaml = YAML()
    yaml.version = (1, 1)  # in which 'no' and 2026-01-01 are no texts, and are put in quotes
    yaml.width = 1_000_000  # folded lines end in blanks
    yaml.Representer = _Representer
    text = io.StringIO()
    yaml.dump(entry.model_dump(mode="json", exclude_none=True), text)
    return text.getvalue().removeprefix(_VERSION)


class _Representer(RoundTripRepresenter):
    """Writes 1e-06 as 1.0e-06: to readers of version 1.1 the former is a text."""

    def represent_float(self, number: float) -> Any:
        text = repr(number)
        dotted = text if "." in text else text.replace("e", ".0e")
        return self.represent_scalar("tag:yaml.org,2002:float", dotted)


_Representer.add_representer(float, _Representer.represent_float)


def _plain(release: str) -> str:
    """A release id as part of a link; its counter keeps it apart from others of the data set."""
    return re.sub(r"[^a-z0-9]+", "-", release.lower())


def _basic(
    manifest: ReleaseManifest, stated: Stated, withdrawn: WithdrawalManifest | None
) -> Basic:
    dataset, card = manifest.dataset, manifest.card
    gone = ""
    if withdrawn is not None:
        gone = f"Withdrawn by its curator on {withdrawn.on}, to be used no longer: "
        gone += f"{withdrawn.reason.rstrip('.')}. "
    rows = manifest.kind in {"rows", "reports"}
    return Basic(
        name=f"{dataset.title}, version {dataset.version}" + (" (withdrawn)" if gone else ""),
        data_curators=(
            Curator(data_curator_name=card["curator"], data_curator_type=stated.curator_type),
        ),
        description=gone + contents(manifest),
        intended_use=card["intended_use"],
        data_product_type="Dataset" if rows else "Summary statistics",
        data_product_region=stated.region,
        data_product_sector=stated.sector,
        publication_date=manifest.published,
    )


def _parameters(manifest: ReleaseManifest) -> Parameters:
    """Of the variant that is named; others follow in words."""
    guarantee = manifest.guarantee
    if guarantee.pure is not None:
        return Parameters(epsilon=_rounded_up(guarantee.pure))
    return Parameters(epsilon=_rounded_up(guarantee.epsilon), delta=guarantee.delta)


def _rounded_up(number: float) -> float:
    """To six significant digits: a larger epsilon holds as well."""
    stated = Decimal(repr(number))
    digits = Decimal(1).scaleb(stated.adjusted() - 5)
    return float(stated.quantize(digits, ROUND_CEILING))


def _model(manifest: ReleaseManifest) -> DeploymentModel:
    dataset, local = manifest.dataset, manifest.mechanism["name"] == "local"
    return DeploymentModel(
        model_name="Local" if local else "Central",
        trust_assumptions=manifest.card["trust_model"],
        release_type="One release",
        release_type_details=f"Release {manifest.release} of the data set {dataset.id}. All "
        "releases that protect the same records are held to one budget together.",
        data_source_type="Static",
        data_source_type_details=f"Version {dataset.version} of the data.",
        access_type="Non-interactive",
        access_type_details="Files: whoever has them may compute from them whatever they like.",
    )


def _implementation(manifest: ReleaseManifest, sha256: str) -> Implementation:
    card, dataset = manifest.card, manifest.dataset
    software = ", ".join(f"{name} {version}" for name, version in manifest.software.items())
    asked = ", ".join(f"{key} {value}" for key, value in manifest.mechanism.items())
    folds = "" if card["folds"] == "none" else f" Folds: {card['folds']}."
    return Implementation(
        preprocessing_and_hyperparameter_tuning=card["pre_processing"],
        mechanisms=f"{card['mechanism']}. Software: {software}.",
        composition=card["accounting"] + "." + folds,
        post_processing=card["post_processing"],
        justification=f"The curator asked for: {asked}. The noise follows from that, and the "
        "guarantee stated here is the exact one of the noise in use, rounded up. Why the curator "
        "chose so is not on record.",
        utility=noise_words(manifest),
        additional_information=f"Release {dataset.id}/{manifest.release}. Its bundle is signed; "
        f"the SHA-256 of its SHA256SUMS is {sha256}. 'gramercy verify' works its guarantee out "
        "anew.",
    )
