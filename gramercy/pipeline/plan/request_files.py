"""Read requests and contracts from YAML, and register contracts.

Errors name the line, and never quote a value. Limits on the files are checked before they are
loaded: an alias stands for a whole list or mapping, aliases of aliases let a few lines stand for
any number of values, and merge keys (``<<``) copy all of them. Contracts that a steward registers
in the home are for releases that a Prefect server starts.
"""

from __future__ import annotations

import copy
import datetime
import glob
import io
import re
from functools import lru_cache
from pathlib import Path
from typing import Any

from gramercy.common.disk import make_folder, write_atomically
from gramercy.common.extras import publishing
from gramercy.common.home import Home
from gramercy.pipeline.context import Context
from gramercy.pipeline.plan.request_model import Request
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
    from ruamel.yaml.events import (
        AliasEvent,
        CollectionEndEvent,
        CollectionStartEvent,
        NodeEvent,
    )
    from ruamel.yaml.parser import ParserError
    from ruamel.yaml.scanner import ScannerError


def read_contract(path: Path) -> Contract:
    """Read a contract; a relative `source` is relative to the folder of the file."""
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
    """Read a request; a path in `dataset` is relative to the folder of the file."""
    request = _read(Request, path, RequestError)
    if period is not None:
        request = request.model_copy(update={"period": period})
    if not request.dataset.endswith((".yaml", ".yml")):
        return request
    return request.model_copy(update={"dataset": str(path.resolve().parent / request.dataset)})


def _read(model: type[M], path: Path, error: type[Invalid]) -> M:
    """Read a YAML 1.2 file (where ``1e-6`` is a number) as `model`; raises as `parse` does."""
    is_contract = error is ContractError
    name = "contract" if is_contract else "request"
    family = families.CONTRACT_FILE if is_contract else families.REQUEST_FILE
    problem, data = None, None
    try:
        text = path.read_text(encoding="utf-8")
        if exceeds_limits(text):
            problem = families.YAML(
                "The file has more than {characters} characters or, with all aliases expanded, "
                "more than {nodes} values.",
                "Is it a request or a contract, and not the table? If so, use fewer aliases "
                "('*name'), or patterns for columns that are declared alike.",
                characters=MOST_CHARACTERS,
                nodes=MOST_NODES,
            )
        else:
            data = copy.deepcopy(_parsed(text))
    except FileNotFoundError:
        sentence, remedy = "{file}: no such file.", "Check the path of the request."
        if is_contract:
            sentence = "{file}: this contract does not exist."
            remedy = (
                "Check 'dataset' in the request: it names a file in the folder 'contracts' of the "
                "home, or is a path."
            )
        raise family(sentence, remedy, file=str(path)) from None
    except IsADirectoryError:
        remedy = f"Name the {name}'s YAML file in it."
        raise family("{file} is a folder.", remedy, file=str(path)) from None
    except (OSError, UnicodeDecodeError) as caught:
        problem = families.YAML(
            "The file cannot be read as UTF-8 text ({reason}).",
            "Save it again with the encoding UTF-8, and check that you may read it.",
            reason=type(caught).__name__,
        )
    except (ValueError, RecursionError):  # an impossible date, an unbounded number
        problem = families.YAML(
            "A value is impossible, such as the date 2026-02-31.", "Correct the value."
        )
    except TypeError:  # a list or a mapping as a key, which only an alias can be
        problem = families.YAML("A key is a list or a mapping.", "Write every key as a text.")
    except YAMLError as caught:
        problem = _yaml_problem(caught)
    other = "request" if is_contract else "contract"
    if isinstance(data, dict) and _ONLY_IN[other] in data and _ONLY_IN[name] not in data:
        problem = families.YAML(
            "This is a {other}: it has the key '{key}'.",
            "The request names the contract as its 'dataset', and the command names the request.",
            other=other,
            key=_ONLY_IN[other],
        )
    if problem is None:
        return parse(model, data, str(path), error)
    not_valid = wordings.contract_not_valid if is_contract else wordings.request_not_valid
    failure = not_valid(str(path))
    failure.details = (problem,)
    raise failure


@lru_cache(maxsize=8)  # one command reads the same files several times
def _parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


_ONLY_IN = {"contract": "columns", "request": "mechanism"}


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
        reason = "this key is repeated"
    elif isinstance(caught, ScannerError | ParserError) and caught.problem:
        reason = str(caught.problem)  # quotes no more than single characters of the file
    at_start, remedy = next(each for said, each in _REMEDIES.items() if re.search(said, reason))
    if at_start:  # where the key, the list or the text begins that does not end
        mark = getattr(caught, "context_mark", None) or mark
    return families.YAML(
        "Line {line}: {reason}.", "{remedy}", line=mark.line + 1, reason=reason, remedy=remedy
    )


# By what the parser says: whether the error is where the context begins, and what to do there.
_REMEDIES = {
    r"'\\t'": (False, "Replace the tab by blanks: lines are indented by blanks only."),
    r"expected ':'": (True, "Write 'key: value', with a colon and a blank after the key."),
    r"escape character": (
        False,
        "Use single quotes: a backslash in double quotes has a meaning of its own.",
    ),
    r"is repeated": (False, "Remove this line, or the earlier one with the same key."),
    r"mapping values": (
        False,
        "Put a text that contains a colon and a blank in quotes; otherwise, correct the blanks "
        "at the beginning of the line.",
    ),
    r"expected ',' or": (True, "Close the bracket or brace that opens here."),
    r"found '<scalar>'": (
        False,
        "Put the whole text in double quotes: it goes on after a closing quote.",
    ),
    r"expected <block end>": (
        False,
        "Begin this line with as many blanks as the others of the same list or key.",
    ),
    r"end of stream|quoted scalar": (True, "Close the quotes that open here."),
    r"character|alphabetic": (False, "Put the text in quotes."),
    r"": (False, "Correct the YAML there: a text that begins with * or & needs quotes."),
}


MOST_CHARACTERS = 2_000_000
MOST_NODES = 200_000  # a contract of 5000 columns with bounds, centres and scales has 50,000
_MOST_DEPTH = 100
_BRACKET = re.compile(r"[\[\]{}]")


def exceeds_limits(text: str) -> bool:
    """Whether a YAML file is too large, also with all aliases expanded, or nested too deeply."""
    if len(text) > MOST_CHARACTERS:
        return True
    if "&" not in text and not _may_be_deep(text):  # without an anchor there is no alias
        return False
    sizes: dict[str, int] = {}  # by anchor: number of values, with all aliases expanded
    open_nodes: list[tuple[str | None, int]] = []  # anchor of each open collection, and its start
    nodes = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, AliasEvent):
            nodes += sizes.get(event.anchor, 1)  # 1 for an alias inside of its own anchor
        elif isinstance(event, NodeEvent):
            nodes += 1
            if isinstance(event, CollectionStartEvent):
                open_nodes.append((event.anchor, nodes - 1))
            elif event.anchor:
                sizes[event.anchor] = 1
        elif isinstance(event, CollectionEndEvent):
            anchor, start = open_nodes.pop()
            if anchor:
                sizes[anchor] = nodes - start
        if nodes > MOST_NODES or len(open_nodes) > _MOST_DEPTH:
            return True
    return False


def _may_be_deep(text: str) -> bool:
    """Whether brackets, also those in texts, are nested deeply."""
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        if depth > _MOST_DEPTH:
            return True
    return False


def dated_request(context: Context, request: Request, moment: datetime.datetime) -> Request:
    """The request with its version filled in.

    Parameters
    ----------
    request
        The request; its version may have directives such as ``%Y`` and the placeholder
        ``{period}``.
    moment
        The time for which the release is scheduled. ``{period}`` becomes the request's `period`,
        or the last one that was complete then: it depends on no later time, so a retry is for the
        same period.
    """
    if not request.names_period:
        return request.at(moment)
    contract = read_contract(context.home.contract(request.dataset))
    return request.in_period(contract, moment)


def register(home: Home, path: Path, *, replace: bool = False) -> Path:
    """Copy a contract into the home, with its source as an absolute path.

    Parameters
    ----------
    path
        The contract's YAML file; it may change afterwards without any effect on scheduled runs.
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
    """A request that names its registered contract by its id."""
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
