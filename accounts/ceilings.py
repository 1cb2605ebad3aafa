"""The most that this installation allows per channel (SPEC P15): no operator's own limit goes beyond it."""

from collections.abc import Mapping

from django.conf import settings

SANDBOX = "sandbox"  # nothing leaves this machine

WORDS: Mapping[str, str] = {"per_minute": "minute", "per_day": "day"}


def ceiling_of(channel: str, transport: str) -> dict[str, int]:
    """Return the ceilings of a channel by the names of their limits; none for the sandbox."""
    if transport == SANDBOX:
        return {}
    return {name: most for name, most in settings.CEILINGS.get(channel, {}).items() if most}


def refusals(channel: str, transport: str, values: Mapping[str, int | None]) -> dict[str, str]:
    """Return why limits are refused, by their names."""
    return {
        name: f"At most {most:,} per {WORDS[name]}: this installation allows no more on this channel, since services "
        f"block accounts that send faster. Staff can change {setting_of(channel, name)}."
        for name, most in ceiling_of(channel, transport).items()
        if (values.get(name) or 0) > most
    }


def setting_of(channel: str, name: str) -> str:
    return f"{channel.upper()}_MOST_{name.upper()}"
