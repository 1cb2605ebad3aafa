"""Keeps the secret ends of addresses out of every log, our own and those of libraries."""

import re

from structlog.typing import EventDict

# Anyone who knows the end of these addresses can use them. Every text that is logged is searched for them.
SECRET_END = re.compile(
    r"(/(?:files|hooks/[^/\s]+|unsubscribe|join|login/password|me/email|notifications/move|calendar(?=/[0-9]+-[0-9a-f]))/)[^\s\"'<>]+"
)


def without_secret(text: str) -> str:
    return SECRET_END.sub(r"\1...", text)


def without_secrets(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Remove secret ends from all values of an event; a structlog processor, also for the loggers of libraries."""
    return {name: without_secret(value) if isinstance(value, str) else value for name, value in event.items()}
