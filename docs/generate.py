"""Write docs/reference.md from the docstrings: ``python docs/generate.py``.

What is public is found, not listed: the names that `gramercy` and `estimators.scikit` export, every
class of ours that their public members give back, every entry of the registries, every error, and
every command.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
import typing
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, get_args, get_origin

import typer.main
from pydantic import BaseModel
from pydantic.fields import FieldInfo

import gramercy
import gramercy.estimators.scikit
from gramercy import estimators
from gramercy.cli.main import app
from gramercy.common.home import Home
from gramercy.mechanisms import registry
from gramercy.schemas import errors
from gramercy.schemas.contract import Contract
from gramercy.schemas.model import Model
from gramercy.schemas.request import ReleaseRequest
from gramercy.schemas.specs import MechanismSpec

PAGE = Path(__file__).with_name("reference.md")
HEAD = """\
# Reference

Written by `python docs/generate.py` from the docstrings and the command line, not by hand.
What the estimators are for is in [estimators.md](estimators.md), mechanisms and their proofs are in
[mechanisms](mechanisms/README.md), words in the [glossary](glossary.md).
"""
CODES = "Exit codes: 0 done, 2 refused or invalid, 1 failure, 130 interrupted."
KEYS = "Keys of the YAML file. What the classes can do beside is for developers, in the source."
SETTINGS = "Keys in a request, `--set key=value` on the command line, parameters in Python."
OF_ALL = "What is said of `MechanismSpec` holds for each; below stands what a mechanism has beside."
_OURS = "gramercy."
_TITLE = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def page() -> str:
    """The whole page."""
    public = list(reachable(getattr(gramercy, name) for name in gramercy.__all__))
    wrong = [each for each in vars(errors).values() if is_error(each)]
    parts = [
        HEAD,
        *chapter("Command line", CODES, commands()),
        *chapter("Python: `import gramercy`", "", map(described, public)),
        *chapter("Errors", error_table(wrong), map(described, long(wrong))),
        *chapter(
            "Estimators in the style of scikit-learn: `estimators.scikit`",
            "",
            (
                described(getattr(gramercy.estimators.scikit, name))
                for name in gramercy.estimators.scikit.__all__
            ),
        ),
        *chapter("Settings of estimators", SETTINGS, map(keys, estimators.registry.values())),
        *chapter("The contract", KEYS, map(keys, reachable([Contract]))),
        *chapter("The request", KEYS, map(keys, reachable([ReleaseRequest]))),
        *chapter(
            "Settings of mechanisms",
            OF_ALL,
            [keys(MechanismSpec), *(keys(m.spec, MechanismSpec) for m in registry.values())],
        ),
        *chapter("The home and its environment variables", "", [described(Home)]),
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def chapter(title: str, intro: str, parts: Iterable[str]) -> Iterator[str]:
    """A heading, and what is under it."""
    yield f"## {title}"
    yield intro
    yield from parts


# Which names are public.


def is_error(thing: object) -> bool:
    """Whether it is an error that a user can meet."""
    return isinstance(thing, type) and issubclass(thing, gramercy.GramercyError)


def long(wrong: Iterable[Any]) -> Iterator[Any]:
    """Errors that have more to say than one line."""
    return (each for each in wrong if len((inspect.getdoc(each) or "").splitlines()) > 1)


def reachable(start: Iterable[Any]) -> Iterator[Any]:
    """Functions and classes, and the classes of ours that their public members give back."""
    waiting, seen = [each for each in start if not is_error(each)], set()
    while waiting:
        thing = waiting.pop(0)
        if thing in seen:
            continue
        seen.add(thing)
        yield thing
        waiting += [each for given in gives(thing) for each in ours(given)]


def gives(thing: Any) -> Iterator[Any]:
    """Annotations of what it gives back: its own, or those of its public members and fields."""
    if inspect.isfunction(thing):
        yield hint(thing)
        return
    if issubclass(thing, BaseModel):
        yield from (field.annotation for field in thing.model_fields.values())
        return
    for member in (*dict(members(thing)).values(), *filter(None, [vars(thing).get("__getitem__")])):
        yield hint(getter(member))


def hint(function: Any) -> Any:
    """What a function gives back, also where its module imports that for type checkers only."""
    module = importlib.import_module(function.__module__)
    known = dict(vars(module))
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            exec(compile(ast.Module(node.body, []), module.__name__, "exec"), known)
    written = function.__annotations__.get("return")
    return eval(written, known) if isinstance(written, str) else written


def ours(annotation: Any) -> Iterator[type]:
    """Classes of ours that an annotation names."""
    if isinstance(annotation, type):
        if annotation.__module__.startswith(_OURS) and annotation.__doc__:
            yield annotation
        return
    for part in get_args(annotation):
        yield from ours(part)


def members(thing: type) -> Iterator[tuple[str, Any]]:
    """Public methods and properties that a class has of its own."""
    for name, member in vars(thing).items():
        if not name.startswith("_") and hasattr(getter(member), "__annotations__"):
            yield name, member


def getter(member: Any) -> Any:
    """The function behind a method or a property."""
    if isinstance(member, property):
        return member.fget
    if isinstance(member, cached_property):
        return member.func
    plain = getattr(member, "__func__", member)
    return plain if inspect.isfunction(plain) else None


# How they are shown.


def described(thing: Any) -> str:
    """A function or a class, with its public members."""
    called = "" if is_model(thing) else signature(thing)
    parts = [f"### {thing.__name__}", f"`{place(thing)}{called}`"]
    if isinstance(thing, type):
        above = ", ".join(f"`{base.__name__}`" for base in thing.__bases__ if told(base))
        parts += [f"Has all that {above} has."] if above else []
    parts.append(docstring(thing, fields(thing)))
    if isinstance(thing, type):
        parts += [member_text(*each) for each in members(thing) if not overrides(thing, each[0])]
    return "\n\n".join(parts)


def keys(model: type[BaseModel], beside: type[BaseModel] = BaseModel) -> str:
    """A model that is written as YAML: its keys, but for those that `beside` has just so."""
    called = {"name", "kind"} & model.model_fields.keys()
    named = [word for each in called for word in choices(fields(model)[each].annotation)]
    shown = {
        name: field
        for name, field in fields(model).items()
        if name not in called or not named
        if repr(field) != repr(fields(beside).get(name))
    }
    title = named[0] if named else model.__name__
    return f"### {title}\n\n`{place(model)}`\n\n{docstring(model, shown)}"


def place(thing: Any) -> str:
    """Where it is imported from: the highest package that has it."""
    path = thing.__module__.split(".")
    known = (".".join(path[:end]) for end in range(1, len(path) + 1))
    from_ = next(each for each in known if exports(each, thing))
    return f"{from_}.{thing.__name__}"


def exports(module: str, thing: Any) -> bool:
    """Whether a module has this under its own name."""
    return getattr(importlib.import_module(module), thing.__name__, None) is thing


def is_model(thing: Any) -> bool:
    """Whether it is a record with fields."""
    return isinstance(thing, type) and issubclass(thing, BaseModel)


def fields(thing: Any) -> Mapping[str, FieldInfo]:
    """Fields of a model; of anything else, none."""
    return thing.model_fields if is_model(thing) else {}


def told(base: type) -> bool:
    """Whether a base class says something to those who use it."""
    return base not in {object, Model, typing.Generic} and base.__module__ != "abc"


def overrides(thing: type, name: str) -> bool:
    """Whether a member only fills in what a base class has described."""
    said = inspect.getdoc(vars(thing)[name]) or ""
    return said.startswith("See `") and any(hasattr(base, name) for base in thing.__bases__)


def member_text(name: str, member: Any) -> str:
    """A method or a property."""
    of = getter(member)
    called = result(of) if isinstance(member, property | cached_property) else signature(of)
    return f"#### `.{name}{called}`\n\n{docstring(of, {})}"


def signature(thing: Any) -> str:
    """How it is called, as it is written."""
    if isinstance(thing, type) and "__init__" not in vars(thing):
        return ""
    found = inspect.signature(thing)
    shown = []
    for each in found.parameters.values():
        if each.name in {"self", "cls"}:
            continue
        star = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}.get(each.kind.name, "")
        default = "" if each.default is each.empty else f"={each.default!r}"
        if each.kind is each.KEYWORD_ONLY and "*" not in shown:
            shown.append("*")
        shown.append(f"{star}{each.name}{default}")
    return f"({', '.join(shown)}){'' if isinstance(thing, type) else result(thing)}"


def result(function: Any) -> str:
    """What it gives back, as it is written."""
    given = function.__annotations__.get("return", "")
    return f" -> {given}" if given else ""


def docstring(thing: Any, known: Mapping[str, FieldInfo]) -> str:
    """A numpydoc docstring as Markdown; of a model, with the defaults of its fields."""
    intro, *rest = _TITLE.split(inspect.getdoc(thing) or "")
    parts = [ticks(intro)]
    titled = dict(zip(rest[::2], rest[1::2], strict=True))
    if is_model(thing):
        titled.pop("Parameters", None)
        said = said_of(thing)
        parts.append(bullets((field_name(*each), said.get(each[0], "")) for each in known.items()))
    for title, body in titled.items():
        parts.append(f"*{title}*")
        if title == "Examples":
            parts.append(f"```pycon\n{body.strip()}\n```")
        elif re.search(r"^ +\S", body, re.MULTILINE):
            parts.append(bullets((f"`{names}`", text) for names, text in entries(body)))
        else:
            parts.append(ticks(body))
    return "\n\n".join(part.strip() for part in parts if part.strip())


def said_of(model: type[BaseModel]) -> dict[str, str]:
    """What the docstrings of a model, and of those it is made from, say of each field."""
    found: dict[str, str] = {}
    for each in reversed(model.__mro__):
        parts = _TITLE.split(inspect.cleandoc(each.__doc__ or ""))
        titled = dict(zip(parts[1::2], parts[2::2], strict=True))
        for names, text in entries(titled.get("Parameters", "")):
            found |= dict.fromkeys(names.split(", "), text)
    return found


def entries(body: str) -> Iterator[tuple[str, str]]:
    """Names and texts of a section of a docstring."""
    for found in re.finditer(r"^(\S.*)\n((?:(?: .*)?\n?)*)", body, re.MULTILINE):
        yield found[1], textwrap.dedent(found[2])


def bullets(listed: Iterable[tuple[str, str]]) -> str:
    """Names and texts as a list."""
    return "".join(
        f"* {name}: {' '.join(ticks(text).split())}\n" if text.strip() else f"* {name}\n"
        for name, text in listed
    )


def field_name(name: str, field: FieldInfo) -> str:
    """A field, with what it may be where that is a few words, and its default."""
    words = [repr(word) for word in choices(field.annotation)]
    facts = [f"one of {', '.join(words)}"] if words[1:] else words
    facts += default(field)
    return f"`{name}`" + (f" ({'; '.join(facts)})" if facts else "")


def default(field: FieldInfo) -> list[str]:
    """Its default in words."""
    if field.is_required():
        return ["required"]
    given = field.default
    if isinstance(given, BaseModel):
        given = next(iter(given.model_dump().values()))
    return [] if given is None or [given] == choices(field.annotation) else [f"default {given!r}"]


def choices(annotation: Any) -> list[Any]:
    """The words that a field may be, wherever they stand in its type."""
    if get_origin(annotation) is typing.Literal:
        return list(get_args(annotation))
    if isinstance(annotation, type):
        return []
    return [each for part in get_args(annotation) for each in choices(part)]


def ticks(text: str) -> str:
    """Literals and names of a docstring in one kind of quotes."""
    return text.replace("``", "`")


def error_table(wrong: Iterable[Any]) -> str:
    """All errors, with the exit code of a command that meets them."""
    rows = "".join(
        f"| `{each.__name__}` | `{each.__bases__[0].__name__}` | {each.exit_code} "
        f"| {'`gramercy`' if each.__name__ in gramercy.__all__ else '`schemas.errors`'} "
        f"| {ticks((inspect.getdoc(each) or '').splitlines()[0])} |\n"
        for each in wrong
    )
    return f"| error | is a | exit code | import from | what it is |\n|---|---|---|---|---|\n{rows}"


def commands() -> Iterator[str]:
    """Every command, with its arguments and options."""
    yield from command("gramercy", typer.main.get_command(app))


def command(name: str, given: Any) -> Iterator[str]:
    """A command, and those below it."""
    arguments = [each for each in given.params if each.param_type_name == "argument"]
    options = [each for each in given.params if each.param_type_name == "option"]
    below = getattr(given, "commands", {})
    words = [argument_name(each) for each in arguments]
    words += ["[OPTIONS]"] * bool(options) + ["[COMMAND]"] * bool(below)
    lines = [
        f"### `{name}`\n",
        f"`{' '.join([name, *words])}`\n",
        f"{inspect.cleandoc(given.help)}\n",
    ]
    listed = [(f"`{word}`", each.help or "") for word, each in zip(words, arguments, strict=False)]
    listed += [(option_name(each), each.help or "") for each in options]
    yield "\n\n".join([*lines, bullets(listed)])
    for each, found in below.items():
        yield from command(f"{name} {each}", found)


def argument_name(argument: Any) -> str:
    """An argument, in brackets where it may be left out."""
    name: str = argument.metavar or argument.name.upper()
    return name if argument.required or name.startswith("[") else f"[{name}]"


def option_name(option: Any) -> str:
    """An option with what it takes and its default."""
    takes = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    plain = option.default is None or option.default in ("", False)
    return f"`{'`, `'.join(option.opts)}{takes}`" + (
        "" if plain else f" (default {option.default})"
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE}: written")
