"""The filters of the recipient picker: read from its form or its address, and written back."""

from collections.abc import Mapping
from dataclasses import dataclass

from accounts.models import Account, Recipient, Tag
from accounts.models.account import Channel
from reminders.audience import Wanted
from reminders.models import Reminder

# The names of the filters in the form; each also exists as `applied_...`, for the list on the screen.
NAMES = ("q", "with", "and", "not", "kind", "by")

# Channels with recipients of several kinds.
KINDS: Mapping[str, tuple[Recipient.Kind, ...]] = {
    Channel.WHATSAPP: (Recipient.Kind.GROUP, Recipient.Kind.PERSON),
    Channel.MATRIX: (Recipient.Kind.ROOM, Recipient.Kind.PERSON),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One choice of a filter."""

    value: str
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """One filter with its choices; the first is that it filters nothing."""

    name: str
    label: str
    options: list[Option]


def typed(data: Mapping[str, str], prefix: str = "") -> dict[str, str]:
    """Return the filters that a form or an address names."""
    return {name: data.get(f"{prefix}{name}", "").strip() for name in NAMES}


def wanted(filters: Mapping[str, str], *, chosen: bool) -> Wanted:
    """Return the filters as conditions; a value that cannot be one is ignored."""
    kind = filters.get("kind", "")
    return Wanted(
        search=filters.get("q", ""),
        account=_id(filters.get("by", "")),
        kind=kind if kind in Recipient.Kind.values else "",
        tags=[tag for name in ("with", "and") if (tag := _id(filters.get(name, ""))) is not None],
        without=[tag for tag in [_id(filters.get("not", ""))] if tag is not None],
        chosen=chosen,
    )


def filters_of(
    reminder: Reminder, applied: Mapping[str, str], tags: list[Tag], accounts: list[Account]
) -> list[Filter]:
    """Return the filters to show: those that leave a choice."""
    by_tag = [(str(tag.pk), tag.name) for tag in tags]
    of_channel = [account for account in accounts if account.channel == reminder.channel]
    offered = (
        ("with", "With any tag", "With the tag", by_tag),
        ("and", "And any tag", "And with the tag", by_tag if len(by_tag) > 1 else []),
        ("not", "Without: no tag", "Without the tag", by_tag),
        ("kind", "Any kind", "Kind", _kinds(reminder.channel)),
        ("by", "Any account", "Reached by", [(str(a.pk), a.name) for a in of_channel]),
    )
    return [
        Filter(name=name, label=label, options=_options(every, choices, applied.get(name, "")))
        for name, every, label, choices in offered
        if choices
    ]


def _kinds(channel: str) -> list[tuple[str, str]]:
    """Return the kinds that recipients of the channel may have, where there are several."""
    return [(kind.value, kind.label) for kind in KINDS.get(channel, ())]


def _options(every: str, choices: list[tuple[str, str]], chosen: str) -> list[Option]:
    return [
        Option(value="", text=every, chosen=not chosen),
        *(Option(value=value, text=text, chosen=value == chosen) for value, text in choices),
    ]


def _id(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
