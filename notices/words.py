"""The words of the messages that people get outside of Paceline. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

MOST = 20  # notices that one message spells out


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """One thing that is told. It stands for `number` of its kind."""

    title: str
    body: str
    url: str
    happened_at: datetime
    number: int = 1


@dataclass(frozen=True, slots=True)
class Text:
    """A message: its title and its body."""

    title: str
    body: str


def message(found: Sequence[Told], *, site: str, zone: tzinfo) -> Text:
    """Return the message that tells these things, in the order in which they happened."""
    if len(found) == 1:
        only = found[0]
        return Text(only.title, _lines(only.body, _often(only), _link(only, site)))
    told = [_entry(each, site=site, zone=zone) for each in found[-MOST:]]
    if left := len(found) - len(told):
        told.insert(0, _older(left, site))
    return Text(f"{len(found)} notifications", "\n\n".join(told))


def _older(number: int, site: str) -> str:
    words = "1 older one" if number == 1 else f"{number} older ones"
    return f"{words} in your list: {site}/notifications/" if site else f"{words}."


def _entry(told: Told, *, site: str, zone: tzinfo) -> str:
    head = f"{told.happened_at.astimezone(zone):%d %b %H:%M} {told.title}"
    return _lines(head, told.body, _often(told), _link(told, site))


def _often(told: Told) -> str:
    return f"This happened {told.number} times; this is the newest." if told.number > 1 else ""


def _link(told: Told, site: str) -> str:
    return f"{site}{told.url}" if site and told.url else ""


def _lines(*words: str) -> str:
    return "\n".join(line for line in words if line)
