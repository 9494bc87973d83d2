"""Contracts that a steward registers in the home, for releases that a Prefect server starts."""

from __future__ import annotations

import io
from pathlib import Path

from ruamel.yaml import YAML

from gramercy.common.disk import make_folder, write_atomically
from gramercy.common.home import Home
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.yaml_files import read_contract
from gramercy.schemas import families
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import DatabaseTable
from gramercy.schemas.source import location


def register(home: Home, path: Path, *, replace: bool = False) -> Path:
    """Copy a contract into the home, with its source as an absolute path.

    Parameters
    ----------
    home
        The home whose runs may name the contract by its id.
    path
        The contract's YAML file; it may change afterwards without any effect on scheduled runs.
    replace
        Whether to replace another content that was registered under the same id.

    Returns
    -------
    Path
        The registered file.

    Raises
    ------
    ContractError
        If the contract cannot be used.
    RequestError
        If another content is registered, and must not be replaced.
    """
    contract = read_contract(path)
    registered = home.registered_contract(contract.id)
    if registered.is_file() and not replace and not _is_registered(home, contract):
        raise families.NOT_REGISTERED(
            "{path} is registered with another content.",
            "Compare both files; 'gramercy register {contract} --replace' replaces it.",
            path=str(registered),
            contract=str(path),
        )
    if registered.is_file() and registered.samefile(path):
        return registered
    yaml = YAML()  # keeps comments
    yaml.width = 1000
    yaml.preserve_quotes = True
    facts = yaml.load(path.read_text(encoding="utf-8"))
    if isinstance(facts["source"], str):
        facts["source"] = location(contract.source)
    elif isinstance(contract.source, DatabaseTable):
        facts["source"]["url"] = contract.source.url
    else:
        facts["source"]["path"] = location(contract.source)
    text = io.StringIO()
    yaml.dump(facts, text)
    make_folder(home.contracts, 0o700)
    write_atomically(registered, text.getvalue().encode(), 0o600)
    return registered


def registered_request(home: Home, request: Request) -> Request:
    """A request that names its registered contract by its id.

    Raises
    ------
    ContractError, RequestError
        If its contract is not registered as it is now.
    """
    path = home.contract(request.dataset)
    contract = read_contract(path)
    if not _is_registered(home, contract):
        raise families.NOT_REGISTERED(
            "The contract of '{dataset}' is not registered in this home, or has changed since.",
            "Run 'gramercy register {path}'.",
            dataset=contract.id,
            path=str(path),
        )
    return request.model_copy(update={"dataset": contract.id})


def _is_registered(home: Home, contract: Contract) -> bool:
    registered = home.registered_contract(contract.id)
    return registered.is_file() and read_contract(registered) == contract
