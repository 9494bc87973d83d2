"""Where a table is read and summed."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from gramercy.schemas.model import Model, by_kind
from gramercy.schemas.url import has_secrets

_ADDRESS = r"^[a-z]+://[^\s@?#%\\]+$"


class Here(Model):
    """The table is read and summed by the process that publishes."""

    kind: Literal["here"] = "here"


def _address(text: str) -> str:
    if len(text) > 300 or not re.fullmatch(_ADDRESS, text) or has_secrets(text):
        raise ValueError(
            "must be an address such as tls://10.0.0.5:8786, without user, password, query and "
            "fragment; name certificates in Dask's own configuration"
        )
    return text


# The pattern is for forms, which see no more than a schema.
Scheduler = Annotated[
    str,
    AfterValidator(_address),
    WithJsonSchema({"type": "string", "pattern": _ADDRESS, "maxLength": 300}),
]


class Dask(Model):
    """The table is read and summed by the workers of a Dask cluster: the same integers.

    Parameters
    ----------
    scheduler
        Its scheduler's address, such as ``tls://10.0.0.5:8786``. Default: the one that Dask's own
        configuration names. Prefect stores it, so that it has no user, password, query or fragment.
    """

    kind: Literal["dask"]
    scheduler: Scheduler | None = None


Engine = Annotated[Annotated[Here | Dask, Field(discriminator="kind")], BeforeValidator(by_kind)]
