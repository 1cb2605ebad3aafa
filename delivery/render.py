"""Fills the variables of a message for one recipient."""

import re
from collections.abc import Mapping

VARIABLE = re.compile(r"{{\s*([\w.-]+)\s*}}")


class MissingVariableError(ValueError):
    """The text names a variable that this recipient has no value for."""


def variables(text: str) -> set[str]:
    """The names that `text` asks for."""
    return set(VARIABLE.findall(text))


def render(text: str, values: Mapping[str, object]) -> str:
    """`text` with every `{{ name }}` filled from `values`; what is filled in is not looked at again."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if values.get(name) in (None, ""):
            raise MissingVariableError(f"No value for {{{{ {name} }}}}: fill it in for this recipient.")
        return str(values[name])

    return VARIABLE.sub(value, text)
