"""Optional packages: whether one is installed, and the error that names the extra to install."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from gramercy.schemas.errors import MissingPackages

# As they are imported; pyproject.toml lists them under the same extra.
PUBLISH = frozenset(
    {
        "PIL",
        "alembic",
        "great_expectations",
        "jinja2",
        "markupsafe",
        "matplotlib",
        "prefect",
        "ruamel",
        "sqlalchemy",
    }
)
INSTALL_PUBLISH = "pip install 'gramercy[publish]'"


def is_installed(package: str) -> bool:
    """Whether a package can be imported; it is not."""
    return find_spec(package) is not None


@contextmanager
def publishing() -> Iterator[None]:
    """Run what may import packages of the extra ``publish``.

    Raises
    ------
    MissingPackages
        Where one of them is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PUBLISH:
            raise
    else:
        return
    raise MissingPackages("Publishing needs more packages:", f"{INSTALL_PUBLISH}.")
