"""Write docs/reference from the code: ``python docs/generate.py``.

The pages cover the names that `gramercy` and `estimators.scikit` export, every class of Gramercy
that their public members return, every entry of the registries, every command and every code.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
import typing
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any, get_args, get_origin

import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import gramercy
import gramercy.estimators.scikit
from gramercy import estimators
from gramercy.cli.commands import load
from gramercy.cli.main import app
from gramercy.common.home import Home
from gramercy.mechanisms import registry
from gramercy.schemas import errors
from gramercy.schemas.contract import Contract
from gramercy.schemas.families import catalogue
from gramercy.schemas.model import Model
from gramercy.schemas.problem import Family, Notice
from gramercy.schemas.request import ReleaseRequest
from gramercy.schemas.request_parts import MechanismSpec

FOLDER = Path(__file__).with_name("reference")
NOTE = "<!-- Written by `python docs/generate.py`. Do not edit. -->"

INDEX = """\
# Reference

Every command, class, setting and code of Gramercy, for readers who know what they are looking for.
`python docs/generate.py` writes these pages from the source.

* [Command line](command-line.md): every command with its arguments and options.
* [Python](python.md): `gramercy.open`, and the classes that it gives access to.
* [Estimators](estimators.md): their settings, and the classes in the style of scikit-learn.
* [Files and settings](files.md): every key of the contract and the request, settings of the
  mechanisms, folders and environment variables.
* [Errors and warnings](errors.md): every code with its cause and its remedy.

The [glossary](../glossary.md) explains the terms, [Mechanisms](../mechanisms/README.md) has the
proofs, and [Estimators](../estimators.md) says which estimator suits which task."""

COMMANDS = """\
# Command line

Every command of `gramercy`, with its arguments and options. `gramercy COMMAND --help` prints the
same.

Exit codes: 0 done; 1 failed; 2 refused, or invalid input; 130 interrupted. Every message starts
with a code, which [Errors and warnings](errors.md) and `gramercy explain CODE` explain. A mistyped
name is answered with the most similar one.

`gramercy --install-completion` sets up the Tab key in bash, zsh, fish and PowerShell, and
`gramercy --show-completion` prints the script. Commands, options, estimators, codes, and the data
sets and releases of the home's archive are completed; those of an archive at a URL are not."""

PYTHON = """\
# Python

What `import gramercy` offers to analysts: opening an archive, its releases, and their public facts.
[Read a release in Python](../how-to/python.md) shows how to use it."""

ESTIMATORS = """\
# Settings of estimators

Every setting of every estimator, and the classes in the style of scikit-learn.
[Estimators](../estimators.md) says which one suits which task."""

FILES = """\
# Files and settings

Every key of the contract and the request, for stewards. [Publish a release](../how-to/publish.md)
shows both files in use."""

ERRORS = """\
# Errors and warnings

Every message has a stable code. Look it up here or with `gramercy explain GRM-130`. Words in
capitals stand for the names and numbers of the case at hand.

In Python, an error has the attributes `code`, `sentence`, `hint` and `facts`; catch it by its
class. On the command line, the class determines the exit code."""

ENVIRONMENT = """\
| variable | meaning | default |
|---|---|---|
| `GRAMERCY_HOME` | the home: ledger, keys, contracts, internal records | `~/.gramercy` |
| `GRAMERCY_ARCHIVE_URL` | URL of the archive to publish to | `$GRAMERCY_HOME/archive` |
| `GRAMERCY_WITNESS_URL` | folder or URL that keeps an anchor of every charge | none |
| `GRAMERCY_ALERTS_URL` | where Prefect sends [alerts](../how-to/service.md#alerts) | none |
| `GRAMERCY_PUBLIC_URL` | where the archive is served, for links from pages elsewhere | none |
| `GRAMERCY_ESTIMATE_MINUTES` | after how long Prefect's runs of estimates and reports end | `60` |
| `GRAMERCY_APPROVAL_MINUTES` | how long a run waits until somebody approves its charge | `4320` |
| `GRAMERCY_SERVER_MINUTES` | how long the shared Prefect server outlives its last command | `10` |
| `GRAMERCY_LEDGER_URL` | database of the ledger | `$GRAMERCY_HOME/ledger.sqlite` |"""

IN_A_REQUEST = "Keys in a request, `--set key=value` on the command line, parameters in Python."
MECHANISMS = "All mechanisms have the keys of `MechanismSpec`; the others list what they add."
PACKAGE = "gramercy."
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
WIDTH = 92


def pages() -> dict[str, str]:
    """All pages by their file names."""
    return {
        "README.md": page(INDEX),
        "command-line.md": page(COMMANDS, *commands()),
        "python.md": page(PYTHON, *python_interface()),
        "estimators.md": page(
            ESTIMATORS,
            section("Settings", IN_A_REQUEST, map(describe_keys, estimators.registry.values())),
            section(
                "Classes in the style of scikit-learn",
                "Import them from `gramercy.estimators.scikit`.",
                map(describe, scikit_classes()),
            ),
        ),
        "files.md": page(
            FILES,
            section("The contract", "", map(describe_keys, public_types([Contract]))),
            section("The request", "", map(describe_keys, public_types([ReleaseRequest]))),
            section(
                "Settings of mechanisms",
                MECHANISMS,
                [
                    describe_keys(MechanismSpec),
                    *(describe_keys(each.spec, MechanismSpec) for each in registry.values()),
                ],
            ),
            section("Folders and environment variables", ENVIRONMENT, [describe(Home)]),
        ),
        "errors.md": page(ERRORS, codes(), exception_classes()),
    }


def page(*parts: str) -> str:
    """A page with its note, ending in one line break."""
    return "\n\n".join([NOTE, *(part.strip() for part in parts if part.strip())]) + "\n"


def section(title: str, introduction: str, parts: Iterable[str]) -> str:
    """A heading of the second level with its entries."""
    texts = [f"## {title}", introduction, *parts]
    return "\n\n".join(text.strip() for text in texts if text.strip())


# Public names.


def python_interface() -> Iterator[str]:
    """What `gramercy` exports and returns; scikit-learn classes are on a page of their own."""
    public = [
        each
        for each in public_types(getattr(gramercy, name) for name in gramercy.__all__)
        if each not in scikit_classes()
    ]
    yield section(
        "Catalogues and releases",
        "`Release.estimate` returns one of the [estimators](estimators.md).",
        (describe(each) for each in public if not is_model(each)),
    )
    facts = (describe(each) for each in public if is_model(each))
    yield section("Public facts of a release", "Read them from `Release.manifest`.", facts)


def scikit_classes() -> list[type]:
    """The classes in the style of scikit-learn."""
    module = gramercy.estimators.scikit
    return [getattr(module, name) for name in module.__all__]


def is_error(thing: object) -> bool:
    """Whether it is an exception that a user can meet."""
    return isinstance(thing, type) and issubclass(thing, gramercy.GramercyError)


def public_types(start: Iterable[Any]) -> Iterator[Any]:
    """Functions and classes, and the classes of Gramercy that their public members return."""
    queue, seen = [each for each in start if not is_error(each)], set()
    while queue:
        thing = queue.pop(0)
        if thing in seen:
            continue
        seen.add(thing)
        yield thing
        queue += [
            each for annotation in annotations(thing) for each in gramercy_classes(annotation)
        ]


def annotations(thing: Any) -> Iterator[Any]:
    """Annotations of what it returns, or of its public members and fields."""
    if inspect.isfunction(thing):
        yield return_annotation(thing)
        return
    if issubclass(thing, BaseModel):
        yield from (field.annotation for field in thing.model_fields.values())
        return
    for member in (
        *dict(public_members(thing)).values(),
        *filter(None, [vars(thing).get("__getitem__")]),
    ):
        yield return_annotation(function_of(member))


def return_annotation(function: Any) -> Any:
    """Return type of a function, also where its module imports it for type checkers only."""
    module = importlib.import_module(function.__module__)
    namespace = dict(vars(module))
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            block = compile(ast.Module(node.body, []), module.__name__, "exec")
            exec(block, namespace)  # noqa: S102  imports of this project
    annotation = function.__annotations__.get("return")
    if isinstance(annotation, str):
        return eval(annotation, namespace)  # noqa: S307  an annotation of this project
    return annotation


def gramercy_classes(annotation: Any) -> Iterator[type]:
    """Classes of Gramercy that an annotation names."""
    if isinstance(annotation, type):
        is_own = annotation.__module__.startswith(PACKAGE) and annotation.__doc__
        if is_own and not issubclass(annotation, StrEnum):  # its members are words in a file
            yield annotation
        return
    for part in get_args(annotation):
        yield from gramercy_classes(part)


def public_members(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class defines itself or has from a base in `api`."""
    bases = filter(is_part, thing.__bases__)
    members = {name: member for owner in (thing, *bases) for name, member in vars(owner).items()}
    for name, member in members.items():
        if not name.startswith("_") and hasattr(function_of(member), "__annotations__"):
            yield name, member


def function_of(member: Any) -> Any:
    """The function behind a method or a property."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    function = getattr(member, "__func__", member)
    return function if inspect.isfunction(function) else None


# Functions, classes and models.


def describe(thing: Any) -> str:
    """A function or a class, with its public members."""
    call = "" if is_model(thing) else signature(thing)
    parts = [f"### {thing.__name__}", f"`{import_path(thing)}{call}`"]
    if isinstance(thing, type):
        bases = ", ".join(f"`{base.__name__}`" for base in thing.__bases__ if is_of_interest(base))
        parts += [f"Inherits from {bases}."] if bases else []
    parts.append(docstring(thing, fields(thing)))
    if isinstance(thing, type):
        parts += [
            describe_member(name, member)
            for name, member in public_members(thing)
            if inspect.getdoc(function_of(member)) and not refers_to_base(thing, name)
        ]
    return "\n\n".join(parts)


def describe_keys(model: type[BaseModel], base: type[BaseModel] = BaseModel) -> str:
    """A model that is written as YAML: its keys, except those that `base` has unchanged."""
    discriminators = {"name", "kind"} & model.model_fields.keys()
    names = [word for key in discriminators for word in choices(fields(model)[key].annotation)]
    own = {
        key: field
        for key, field in fields(model).items()
        if key not in discriminators or not names
        if repr(field) != repr(fields(base).get(key))
    }
    title = names[0] if names else model.__name__
    return f"### {title}\n\n`{import_path(model)}`\n\n{docstring(model, own)}"


def import_path(thing: Any) -> str:
    """Dotted path in the highest package that exports it."""
    path = thing.__module__.split(".")
    modules = (".".join(path[:end]) for end in range(1, len(path) + 1))
    module = next(
        name
        for name in modules
        if getattr(importlib.import_module(name), thing.__name__, None) is thing
    )
    return f"{module}.{thing.__name__}"


def is_model(thing: Any) -> bool:
    """Whether it is a pydantic model."""
    return isinstance(thing, type) and issubclass(thing, BaseModel)


def fields(thing: Any) -> Mapping[str, FieldInfo]:
    """Fields of a model; empty for anything else."""
    found = thing.model_fields.items() if is_model(thing) else ()
    return {field.alias or name: field for name, field in found}


def is_of_interest(base: type) -> bool:
    """Whether a reader learns something from the name of a base class."""
    plain = base in {object, Model, typing.Generic} or base.__module__ == "abc"
    return not plain and not is_part(base)


def is_part(base: type) -> bool:
    """Whether a base class only holds a part of its subclasses."""
    return base.__module__.startswith("gramercy.api.")


def refers_to_base(thing: type, name: str) -> bool:
    """Whether the docstring of a member only refers to that of a base class."""
    text = inspect.getdoc(getattr(thing, name)) or ""
    return text.startswith("See `") and any(hasattr(base, name) for base in thing.__bases__)


def describe_member(name: str, member: Any) -> str:
    """A method or a property."""
    function = function_of(member)
    is_property = isinstance(member, property | cached_property)
    call = return_text(function) if is_property else signature(function)
    return f"#### `.{name}{call}`\n\n{docstring(function, {})}".strip()


def signature(thing: Any) -> str:
    """Parameters with their defaults, and the return type."""
    if isinstance(thing, type) and "__init__" not in vars(thing):
        return ""
    parameters: list[str] = []
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.name in {"self", "cls"}:
            continue
        star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(parameter.kind.name, "")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        parameters.append(f"{star}{parameter.name}{default}")
    return f"({', '.join(parameters)}){'' if isinstance(thing, type) else return_text(thing)}"


def return_text(function: Any) -> str:
    """The return type as the source writes it."""
    annotation = function.__annotations__.get("return", "")
    return f" -> {annotation}" if annotation else ""


# Docstrings.


def docstring(thing: Any, model_fields: Mapping[str, FieldInfo]) -> str:
    """A numpydoc docstring as Markdown; for a model, with the defaults of its fields."""
    introduction, *rest = SECTION.split(inspect.getdoc(thing) or "")
    parts = [single_ticks(introduction)]
    sections = dict(zip(rest[::2], rest[1::2], strict=True))
    if is_model(thing):
        sections.pop("Parameters", None)
        parts.append(field_list(thing, model_fields))
    for title, body in sections.items():
        parts.append(f"*{title}*")
        if title == "Examples":
            parts.append(examples(body))
        elif re.search(r"^ +\S", body, re.MULTILINE):
            parts.append(bullets((f"`{names}`", text) for names, text in definitions(body)))
        else:
            parts.append(single_ticks(body))
    return "\n\n".join(part.strip() for part in parts if part.strip())


def examples(body: str) -> str:
    """Examples as a block, after the text that introduces them."""
    text, prompt, code = body.strip().partition(">>>")
    return f"{single_ticks(text.strip())}\n\n```pycon\n{prompt}{code}\n```".strip()


def field_list(model: type[BaseModel], model_fields: Mapping[str, FieldInfo]) -> str:
    """Fields with their descriptions; neighbours with one description share an entry."""
    texts = field_descriptions(model)
    groups = groupby(model_fields, key=lambda name: texts.get(name) or name)
    return bullets(
        (", ".join(field_name(name, model_fields[name]) for name in names), texts.get(names[0], ""))
        for names in (list(group) for _, group in groups)
    )


def field_descriptions(model: type[BaseModel]) -> dict[str, str]:
    """Descriptions of fields from the docstrings of a model and of its bases."""
    descriptions: dict[str, str] = {}
    for base in reversed(model.__mro__):
        parts = SECTION.split(inspect.cleandoc(base.__doc__ or ""))
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        for names, text in definitions(sections.get("Parameters", "")):
            descriptions |= dict.fromkeys(names.split(", "), text)
    return descriptions


def definitions(body: str) -> Iterator[tuple[str, str]]:
    """Names and texts in a section of a docstring."""
    for match in re.finditer(r"^(\S.*)\n((?:(?: .*)?\n?)*)", body, re.MULTILINE):
        yield match[1], textwrap.dedent(match[2])


def bullets(items: Iterable[tuple[str, str]]) -> str:
    """Names and texts as a list."""
    return "".join(
        f"* {name}: {' '.join(single_ticks(text).split())}\n" if text.strip() else f"* {name}\n"
        for name, text in items
    )


def field_name(name: str, field: FieldInfo) -> str:
    """A field, with its choices and its default."""
    words = [repr(word) for word in choices(field.annotation)]
    facts = [f"one of {', '.join(words)}"] if words[1:] else words
    facts += default(field)
    return f"`{name}`" + (f" ({'; '.join(facts)})" if facts else "")


def default(field: FieldInfo) -> list[str]:
    """The default of a field in words, if it has one."""
    if field.is_required():
        return ["required"]
    value = field.default.value if isinstance(field.default, StrEnum) else field.default
    if isinstance(value, BaseModel):
        value = next(iter(value.model_dump().values()))
    return [] if value is None or [value] == choices(field.annotation) else [f"default {value!r}"]


def choices(annotation: Any) -> list[Any]:
    """Literal values and members of enums anywhere in a type."""
    if get_origin(annotation) is typing.Literal:
        return list(get_args(annotation))
    if isinstance(annotation, type):
        return [each.value for each in annotation] if issubclass(annotation, StrEnum) else []
    return [each for part in get_args(annotation) for each in choices(part)]


def single_ticks(text: str) -> str:
    """Docstring literals as Markdown writes them."""
    return text.replace("``", "`")


# Codes.


def exception_classes() -> str:
    """All exception classes, with the exit code of a command that raises them."""
    listed = [each for each in vars(errors).values() if is_error(each)]
    rows = "".join(
        f"| `{each.__name__}` | `{each.__bases__[0].__name__}` | {each.exit_code} "
        f"| {single_ticks((inspect.getdoc(each) or '').splitlines()[0])} |\n"
        for each in listed
    )
    table = f"| class | inherits from | exit code | meaning |\n|---|---|---|---|\n{rows}"
    elsewhere = [f"`{each.__name__}`" for each in listed if each.__name__ not in gramercy.__all__]
    places = f"Import them from `gramercy`; {', '.join(elsewhere)} from `gramercy.schemas.errors`."
    documented = [each for each in listed if len((inspect.getdoc(each) or "").splitlines()) > 1]
    return section("Exception classes", f"{places}\n\n{table}", map(describe, documented))


def codes() -> str:
    """Every family of problems, in order of codes."""
    entries = map(family_entry, catalogue().values())
    return section("Codes", "The message itself says what is wrong, and what to change.", entries)


def family_entry(family: Family[Any]) -> str:
    """A code with its cause and remedy."""
    kind = "A warning; nothing is refused."
    if family.kind is not Notice:
        kind = f"Raised as `{family.kind.__name__}`; exit code {family.kind.exit_code}."
    lines = [f"* Cause: {plain(family.cause)}", f"* Remedy: {plain(family.remedy)}", f"* {kind}"]
    return "\n\n".join([f"### {family.code}", "\n".join(lines)])


def plain(text: str) -> str:
    """Text whose signs Markdown would otherwise interpret, except code."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    parts[::2] = [re.sub(r"([\\*_\[\]$])", r"\\\1", x).replace("<", "&lt;") for x in parts[::2]]
    return "".join(parts)


# Commands.


def commands() -> Iterator[str]:
    """Every command with its arguments and options."""
    root: Any = typer.main.get_command(app)
    root.commands = {name: load(name) for name in root.commands}
    yield from command("gramercy", root)


def command(name: str, node: Any) -> Iterator[str]:
    """A command, then its subcommands."""
    arguments = [each for each in node.params if each.param_type_name == "argument"]
    options = [each for each in node.params if each.param_type_name == "option"]
    subcommands = getattr(node, "commands", {})
    words = [argument_name(each) for each in arguments]
    words += ["[OPTIONS]"] * bool(options) + ["[COMMAND]"] * bool(subcommands)
    text, _, example = inspect.cleandoc(node.help).partition("\n\nExample: ")
    items = [(f"`{word}`", each.help or "") for word, each in zip(words, arguments, strict=False)]
    items += [(option_name(each), each.help or "") for each in options]
    parts = [
        f"## `{name}`",
        f"`{' '.join([name, *words])}`",
        text,
        bullets(items),
        f"```sh\n{example}\n```" if example else "",
    ]
    yield "\n\n".join(part.strip() for part in parts if part)
    for subcommand, below in subcommands.items():
        yield from command(f"{name} {subcommand}", below)


def argument_name(argument: Any) -> str:
    """An argument, in brackets where it is optional."""
    name: str = argument.metavar or argument.name.upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def option_name(option: Any) -> str:
    """An option with its value and its default."""
    value = "" if option.is_flag else f" {option.metavar or option.name.upper().strip('_')}"
    has_default = option.default is not None and option.default not in ("", False)
    return f"`{'`, `'.join(option.opts)}{value}`" + (
        f" (default {option.default})" if has_default else ""
    )


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file_name, content in pages().items():
        (FOLDER / file_name).write_text(content, encoding="utf-8")
    print(f"Written: {FOLDER}")
