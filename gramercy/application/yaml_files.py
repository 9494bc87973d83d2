"""Read contracts and requests from YAML, with errors that name the line and quote no value."""

from __future__ import annotations

import glob
from pathlib import Path

from gramercy.application.request_model import Request
from gramercy.common.extras import publishing
from gramercy.schemas.contract import YEAR, Contract
from gramercy.schemas.errors import ContractError, Invalid, RequestError
from gramercy.schemas.model import M, parse

with publishing():
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.parser import ParserError
    from ruamel.yaml.scanner import ScannerError


def read_contract(path: Path) -> Contract:
    """Read a contract from YAML; its relative `source` is resolved against the file's folder.

    Raises
    ------
    ContractError
        Naming the file, the key and the mend.
    """
    contract = _read(Contract, path, ContractError)
    if YEAR in str(path.resolve().parent):
        raise ContractError(f"{path}: its folder's name holds '{YEAR}'.", "Rename the folder.")
    if "://" in contract.source or Path(contract.source).is_absolute():
        return contract
    folder, source = path.resolve().parent, contract.source
    if glob.has_magic(source) and not (folder / source).is_file():
        return contract.model_copy(update={"source": f"{glob.escape(str(folder))}/{source}"})
    return contract.model_copy(update={"source": str(folder / source)})


def read_request(path: Path) -> Request:
    """Read a request from YAML; a contract's path in it is resolved against the file's folder.

    Raises
    ------
    RequestError
        Naming the file, the key and the mend.
    """
    request = _read(Request, path, RequestError)
    if not request.dataset.endswith((".yaml", ".yml")):
        return request
    return request.model_copy(update={"dataset": str(path.resolve().parent / request.dataset)})


def _read(model: type[M], path: Path, error: type[Invalid]) -> M:
    """Read a YAML 1.2 file (``1e-6`` is a number there) as `model`; raises as `parse` does."""
    try:
        data = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise error(f"{path}: no such file.", "Check the path.") from None
    except IsADirectoryError:
        raise error(f"{path}: is a folder.", "Name the YAML file in it.") from None
    except (OSError, UnicodeDecodeError) as caught:
        reason = type(caught).__name__
        raise error(f"{path}: cannot be read ({reason}).", "It must be UTF-8 text.") from None
    except (ValueError, RecursionError):  # a date that is none, a number without end
        raise error(f"{path}: holds a value that cannot be.", "Mend the YAML.") from None
    except YAMLError as caught:
        mark = getattr(caught, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise error(f"{path}{line}: {_problem(caught)}.", "Correct the YAML there.") from None
    return parse(model, data, str(path), error)


def _problem(caught: YAMLError) -> str:
    """What is wrong with a file's YAML, without its keys and values: a URL may hold a password."""
    if isinstance(caught, DuplicateKeyError):
        return "a key is there twice"
    if isinstance(caught, ScannerError | ParserError) and caught.problem:
        return str(caught.problem)  # quotes single characters alone
    return "not valid YAML"
