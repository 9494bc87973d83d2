"""Optional packages: whether they are installed, and the error that names the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from gramercy.schemas import families

# Import names of the packages of the extra 'publish' in pyproject.toml.
PUBLISH = frozenset(
    {
        *("PIL", "apprise", "great_expectations", "jinja2", "markupsafe", "matplotlib", "prefect"),
        *("ruamel", "sqlalchemy", "sqlglot"),
    }
)
# Of the extra 'convert'; pandas and pyarrow read the other files.
CONVERT = frozenset({"pyreadstat", "python_calamine"})
INSTALL_CONVERT = "pip install 'gramercy[convert]'"
INSTALL_PUBLISH = "pip install 'gramercy[publish]'"
INSTALL_PLOT = "pip install 'gramercy[plot]'"


def is_installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    return find_spec(package) is not None


@contextmanager
def publishing() -> Iterator[None]:
    """Report a missing package of ``publish`` or ``convert`` with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in PUBLISH | CONVERT:
            raise
    else:
        return
    if package in CONVERT:
        raise families.MISSING_PACKAGES(
            "Reading this kind of file needs more packages:", "{command}.", command=INSTALL_CONVERT
        )
    raise families.MISSING_PACKAGES(
        "Publishing needs more packages:", "{command}.", command=INSTALL_PUBLISH
    )
