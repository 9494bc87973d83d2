"""An entry of the OpenDP Deployments Registry: its keys in its order, and the words it takes.

The registry shows all texts as Markdown, and asks for the keys in the order of its schema.
"""

from __future__ import annotations

from typing import Annotated, Literal, get_args

from pydantic import Field

from gramercy.schemas.model import Model, NotNegative, Positive

CuratorType = Literal["Government", "Industry", "Nonprofit"]
Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]
CURATOR_TYPES: tuple[str, ...] = get_args(CuratorType)
SECTORS: tuple[str, ...] = get_args(Sector)

Text = Annotated[str, Field(min_length=1)]


class Curator(Model):
    """Who publishes, and what kind of body that is."""

    data_curator_name: Text
    data_curator_type: CuratorType


class Basic(Model):
    """Tier 1: what is published, by whom, for what."""

    name: Text
    data_curators: Annotated[tuple[Curator, ...], Field(min_length=1)]
    description: Text
    intended_use: Text
    data_product_type: Literal[
        "Summary statistics",
        "Machine learning model",
        "Dataset",
        "Synthetic data",
        "Interactive API",
        "SQL queries",
    ]
    data_product_region: Text
    data_product_sector: Sector | None = None
    publication_date: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class Variant(Model):
    """Tier 2 the name, tier 3 the rest: which differential privacy, of what."""

    variant_name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"]
    data_domain: Text
    unprotected_quantities: Text


class Parameters(Model):
    """Those that the variant has."""

    epsilon: NotNegative | None = None
    delta: NotNegative | None = None
    rho: Positive | None = None


class Loss(Model):
    """Tier 2 the unit and the parameters, tier 3 their details."""

    privacy_unit: Text
    privacy_unit_details: Text
    number_of_privacy_units: Annotated[int, Field(strict=True, ge=1)]
    privacy_parameters: Parameters
    privacy_parameters_details: Text


class DeploymentModel(Model):
    """Tier 2 the names, tier 3 their details: who is trusted, how often is published."""

    model_name: Literal["Local", "Central", "Shuffle", "Federated", "Varies"]
    trust_assumptions: Text
    release_type: Literal["One release", "Many releases"]
    release_type_details: Text
    data_source_type: Literal["Static", "Dynamic"]
    data_source_type_details: Text
    access_type: Literal["Interactive", "Non-interactive"]
    access_type_details: Text


class Implementation(Model):
    """Tier 3: how it was done; `additional_information` is of tier 1."""

    preprocessing_and_hyperparameter_tuning: Text
    mechanisms: Text
    composition: Text
    post_processing: Text
    justification: Text
    utility: Text
    additional_information: Text


class Administrative(Model):
    """What the registry's board has to know. `status` is that of the entry, not of the release."""

    status: Literal[
        "Converted",
        "Draft",
        "Pending",
        "Changes Required",
        "Approved",
        "Approved (Update Requested)",
        "Approved (Pending)",
    ]
    registry_authors: Annotated[tuple[Text, ...], Field(min_length=1)]
    tier: Literal[1, 2, 3]


class Deployment(Model):
    """All that the registry asks of one deployment."""

    basic: Basic
    dp_variant: Variant
    privacy_loss: Loss
    deployment_model: DeploymentModel
    implementation: Implementation
    administrative: Administrative


class RegistryEntry(Model):
    """One file of the registry's folder ``deployments``."""

    url_slug: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")]
    deployment: Deployment
