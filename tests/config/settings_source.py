"""Reads from the source of config/settings.py which names of the environment it uses."""

import ast
from dataclasses import dataclass
from functools import cache

from tests.config.programs import PROJECT

NUMBERS = ("whole", "number")


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """One name that is read, how, and with which default and range where these are written out."""

    name: str
    kind: str
    default: object = None
    low: float | None = None
    high: float | None = None


@cache
def reads() -> dict[str, Read]:
    """Every reading by name, also of those that are read only under some condition."""
    tree = ast.parse((PROJECT / "config" / "settings.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    found = [_read(call) for call in calls if _reader(call) and _named(call)]
    return {read.name: read for read in found}


def numbers() -> list[Read]:
    return [read for read in reads().values() if read.kind in NUMBERS]


def _reader(call: ast.Call) -> str:
    """`env.whole(...)` is `whole`, and `required(...)` stands for itself."""
    match call.func:
        case ast.Attribute(value=ast.Name(id="env"), attr=kind):
            return kind
        case ast.Name(id="required"):
            return "required"
    return ""


def _named(call: ast.Call) -> bool:
    """Leaves out the reading inside `required`, whose name is a parameter."""
    return bool(call.args) and isinstance(call.args[0], ast.Constant)


def _read(call: ast.Call) -> Read:
    kind = _reader(call)
    if kind in NUMBERS:
        name, default, low, high = (ast.literal_eval(argument) for argument in call.args)
        return Read(name=name, kind=kind, default=default, low=low, high=high)
    name, *rest = call.args
    default = ast.literal_eval(rest[0]) if kind == "text" and rest else None
    return Read(name=ast.literal_eval(name), kind=kind, default=default)
