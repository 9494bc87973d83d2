"""An entry of the OpenDP Deployments Registry: its keys, in its order, and their values.

The schema is ``schemas/deployments-schema.yaml`` of ``opendp/deployments-registry-data`` at commit
057e5d81cf60150dd3307e0cf4504b957802fb3b.

The registry shows all texts as Markdown, and requires the keys in the order of its schema.
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
    """The publisher and its kind."""

    data_curator_name: Text
    data_curator_type: CuratorType


class Basic(Model):
    """Tier 1: the data product, its publisher and its purpose."""

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
    """The variant of differential privacy: the name is of tier 2, the rest of tier 3."""

    variant_name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"]
    data_domain: Text
    unprotected_quantities: Text


class Parameters(Model):
    """The privacy parameters of the variant."""

    epsilon: NotNegative | None = None
    delta: NotNegative | None = None
    rho: Positive | None = None


class Loss(Model):
    """The privacy loss: the unit and the parameters are of tier 2, their details of tier 3."""

    privacy_unit: Text
    privacy_unit_details: Text
    number_of_privacy_units: Annotated[int, Field(strict=True, ge=1)]
    privacy_parameters: Parameters
    privacy_parameters_details: Text


class DeploymentModel(Model):
    """Trust assumptions and releases: the names are of tier 2, their details of tier 3."""

    model_name: Literal["Local", "Central", "Shuffle", "Federated", "Varies"]
    trust_assumptions: Text
    release_type: Literal["One release", "Many releases"]
    release_type_details: Text
    data_source_type: Literal["Static", "Dynamic"]
    data_source_type_details: Text
    access_type: Literal["Interactive", "Non-interactive"]
    access_type_details: Text


class Implementation(Model):
    """The implementation, of tier 3; `additional_information` is of tier 1."""

    preprocessing_and_hyperparameter_tuning: Text
    mechanisms: Text
    composition: Text
    post_processing: Text
    justification: Text
    utility: Text
    additional_information: Text


class Administrative(Model):
    """Facts for the registry's board. `status` is that of the entry, not of the release."""

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
    """All keys of one deployment."""

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
