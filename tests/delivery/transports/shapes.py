"""Checks a request field by field, as a published description says."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Maybe:
    """A field that may be left out."""

    shape: "Shape"


# A type; one of several values; a pattern for the whole string; a list of something; an object's fields.
Shape = type | frozenset[Any] | re.Pattern[str] | list[Any] | Mapping[str, Any]


def misfits(value: object, shape: Shape, at: str = "body") -> list[str]:
    """Return what is wrong with the value: a wrong type, a missing field, an unknown field."""
    match shape:
        case type():
            # In JSON, true is no number.
            fits = isinstance(value, shape) and not (shape is int and isinstance(value, bool))
            return [] if fits else [f"{at} is no {shape.__name__}"]
        case frozenset():
            return [] if isinstance(value, str) and value in shape else [f"{at} is none of {sorted(shape)}"]
        case re.Pattern():
            fits = isinstance(value, str) and shape.fullmatch(value) is not None
            return [] if fits else [f"{at} does not match {shape.pattern}"]
        case [item]:
            if not isinstance(value, list):
                return [f"{at} is no list"]
            return [
                wrong for number, each in enumerate(value) for wrong in misfits(each, item, f"{at}[{number}]")
            ]
        case _:
            assert isinstance(shape, Mapping)
            return _field_misfits(value, shape, at)


def _field_misfits(value: object, fields: Mapping[str, Any], at: str) -> list[str]:
    if not isinstance(value, Mapping):
        return [f"{at} is no object"]
    wrong = [f"{at}.{name} is not known" for name in value if name not in fields]
    for name, shape in fields.items():
        inner = shape.shape if isinstance(shape, Maybe) else shape
        if name in value:
            wrong += misfits(value[name], inner, f"{at}.{name}")
        elif not isinstance(shape, Maybe):
            wrong.append(f"{at}.{name} is missing")
    return wrong
