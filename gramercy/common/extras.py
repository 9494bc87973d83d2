"""Optional packages: whether they are installed, and the error that names the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from gramercy.schemas.problems.installation import publishing_packages

# Import names of the packages of the extra 'publish' in pyproject.toml.
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
        "sqlglot",
    }
)
INSTALL_PUBLISH = "pip install 'gramercy[publish]'"
INSTALL_PLOT = "pip install 'gramercy[plot]'"


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    return find_spec(package) is not None


@contextmanager
def publishing() -> Iterator[None]:
    """Report a missing package of the extra ``publish`` with the command that installs it.

    Raises
    ------
    MissingPackages
        If a package of the extra is imported and not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in PUBLISH:
            raise
    else:
        return
    raise publishing_packages(INSTALL_PUBLISH)
