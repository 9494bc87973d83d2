"""Read contracts and requests from YAML; errors name the line, and never quote a value."""

from __future__ import annotations

import copy
import glob
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from gramercy.common.extras import publishing
from gramercy.pipeline.plan.request_model import Request
from gramercy.pipeline.plan.yaml_limits import MOST_CHARACTERS, MOST_NODES, exceeds_limits
from gramercy.schemas import families, wordings
from gramercy.schemas.contract import Contract
from gramercy.schemas.database import SQLITE, DatabaseTable
from gramercy.schemas.errors import ContractError, Invalid, InvalidValue, RequestError
from gramercy.schemas.model import M, parse
from gramercy.schemas.periods import placeholders_in
from gramercy.schemas.source import AnySource, at_location, location

with publishing():
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.parser import ParserError
    from ruamel.yaml.scanner import ScannerError


def _contract_not_found(file: str) -> ContractError:
    return families.CONTRACT_FILE(
        "{file}: this contract does not exist.",
        "Check 'dataset' in the request: it names a file in the folder 'contracts' of the home, "
        "or is a path.",
        file=file,
    )


def _request_not_found(file: str) -> RequestError:
    return families.REQUEST_FILE(
        "{file}: no such file.",
        "Check the path of the request.",
        file=file,
    )


def _contract_is_folder(file: str) -> ContractError:
    return families.CONTRACT_FILE(
        "{file} is a folder.",
        "Name the contract's YAML file in it.",
        file=file,
    )


def _request_is_folder(file: str) -> RequestError:
    return families.REQUEST_FILE(
        "{file} is a folder.",
        "Name the request's YAML file in it.",
        file=file,
    )


def read_contract(path: Path) -> Contract:
    """Read a contract; a relative `source` is relative to the folder of the file.

    Raises
    ------
    ContractError
        Naming the file and the key.
    """
    contract = _read(Contract, path, ContractError)
    if placeholders_in(str(path.resolve().parent)):
        raise families.CONTRACT_FILE(
            "{file}: the folder of the contract must not have '{{year}}' or another placeholder "
            "in its name.",
            "Rename the folder.",
            file=str(path),
        )
    folder = path.resolve().parent
    return contract.model_copy(update={"source": _relative_to(folder, contract.source)})


def _relative_to(folder: Path, source: AnySource) -> AnySource:
    """A source whose relative paths are relative to a folder."""
    if isinstance(source, DatabaseTable):
        database = source.url.removeprefix(SQLITE)
        if database == source.url or Path(database).is_absolute():
            return source
        return source.model_copy(update={"url": f"{SQLITE}{folder / database}"})
    name = location(source)
    if "://" in name or Path(name).is_absolute():
        return source
    if glob.has_magic(name) and not (folder / name).is_file():
        return at_location(source, f"{glob.escape(str(folder))}/{name}")
    return at_location(source, str(folder / name))


def read_request(path: Path, period: str | None = None) -> Request:
    """Read a request; a path in `dataset` is relative to the folder of the file.

    Parameters
    ----------
    path
        The YAML file.
    period
        A period of the data, in place of the one in the file.

    Raises
    ------
    RequestError
        Naming the file and the key.
    """
    request = _read(Request, path, RequestError)
    if period is not None:
        request = request.model_copy(update={"period": period})
    if not request.dataset.endswith((".yaml", ".yml")):
        return request
    return request.model_copy(update={"dataset": str(path.resolve().parent / request.dataset)})


def _read(model: type[M], path: Path, error: type[Invalid]) -> M:
    """Read a YAML 1.2 file (where ``1e-6`` is a number) as `model`; raises as `parse` does."""
    try:
        text = path.read_text(encoding="utf-8")
        if exceeds_limits(text):
            raise _not_valid(
                error,
                path,
                families.YAML(
                    "The file has more than {characters} characters or, with all aliases expanded, "
                    "more than {nodes} values.",
                    "Is it a request or a contract, and not the table? If so, use fewer aliases "
                    "('*name'), or patterns for columns that are declared alike.",
                    characters=MOST_CHARACTERS,
                    nodes=MOST_NODES,
                ),
            )
        data = copy.deepcopy(_parsed(text))
    except FileNotFoundError:
        raise _NOT_FOUND[error](str(path)) from None
    except IsADirectoryError:
        raise _IS_FOLDER[error](str(path)) from None
    except (OSError, UnicodeDecodeError) as caught:
        raise _not_valid(
            error,
            path,
            families.YAML(
                "The file cannot be read ({reason}).",
                "It must be UTF-8 text that you may read.",
                reason=type(caught).__name__,
            ),
        ) from None
    except (ValueError, RecursionError):  # an impossible date, an unbounded number
        raise _not_valid(
            error,
            path,
            families.YAML(
                "A value is impossible, such as the date 2026-02-31.",
                "Correct the value.",
            ),
        ) from None
    except TypeError:  # a list or a mapping as a key, which only an alias can be
        raise _not_valid(
            error,
            path,
            families.YAML(
                "A key is a list or a mapping.",
                "Write every key as a text.",
            ),
        ) from None
    except YAMLError as caught:
        raise _not_valid(error, path, _yaml_problem(caught)) from None
    return parse(model, data, str(path), error)


@lru_cache(maxsize=8)  # one command reads the same files several times
def _parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


_NOT_FOUND: dict[type[Invalid], Callable[[str], Invalid]] = {
    ContractError: _contract_not_found,
    RequestError: _request_not_found,
}
_IS_FOLDER: dict[type[Invalid], Callable[[str], Invalid]] = {
    ContractError: _contract_is_folder,
    RequestError: _request_is_folder,
}
_NOT_VALID: dict[type[Invalid], Callable[[str], Invalid]] = {
    ContractError: wordings.contract_not_valid,
    RequestError: wordings.request_not_valid,
}


def _not_valid(error: type[Invalid], path: Path, detail: InvalidValue) -> Invalid:
    failure = _NOT_VALID[error](str(path))
    failure.details = (detail,)
    return failure


def _yaml_problem(caught: YAMLError) -> InvalidValue:
    """The problem, without keys and values: a URL in the file may contain a password."""
    mark = getattr(caught, "problem_mark", None)
    if mark is None:
        return families.YAML(
            "The file has a control character that YAML does not allow.",
            "Remove it, or save the file as plain UTF-8 text.",
        )
    reason = "this is not valid YAML"
    if isinstance(caught, DuplicateKeyError):
        reason = "a key is repeated"
    elif isinstance(caught, ScannerError | ParserError) and caught.problem:
        reason = str(caught.problem)  # quotes no more than single characters of the file
    return families.YAML(
        "Line {line}: {reason}.",
        "Correct the YAML there.",
        line=mark.line + 1,
        reason=reason,
    )
