"""Merges the limits of an account, and says where each number comes from (SPEC P2). Pure.

A value of the account goes before its profile's, and that before the settings'. All resulting limits apply at
once, and each may only make the account slower: the strictest wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from delivery.pacing import Limits

Values = Mapping[str, int | float | None]

# Limits that belong together come from one source: the shortest gap of one could exceed the longest of another.
GROUPS = (
    ("per_minute",),
    ("per_hour",),
    ("per_day",),
    ("per_24_hours",),
    ("per_7_days",),
    ("per_30_days",),
    ("new_per_day",),
    ("new_per_week",),
    ("gap_min", "gap_max"),
    ("batch_size", "batch_pause"),
)


class Source(StrEnum):
    """The place that a limit comes from."""

    ACCOUNT = "account"  # the account's own limits
    PROFILE = "profile"  # the profile that the account uses
    SETTINGS = "settings"  # the installation's default
    CEILING = "ceiling"  # the most that the installation allows on the channel
    SERVICE = "service"  # what the service itself allows the account
    WARM_UP = "warm_up"  # the warm-up cap of the day, while the account is new


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The limits that apply, and the source of each limit that is set, by its name."""

    limits: Limits
    sources: Mapping[str, Source]


def effective(
    *,
    account: Values,
    profile: Values,
    settings: Values,
    warm_up_cap: int | None = None,
    ceiling: Mapping[str, int] = MappingProxyType({}),
    service: Mapping[str, int] = MappingProxyType({}),
    shortest_gap: float = 0.0,
) -> Effective:
    """Return the limits of one action, merged from all sources. None, like a missing name, sets nothing."""
    given: dict[str, int | float] = {}
    sources: dict[str, Source] = {}
    said = ((Source.ACCOUNT, account), (Source.PROFILE, profile), (Source.SETTINGS, settings))
    for group in GROUPS:
        for source, values in said:
            whole = {name: value for name in group if (value := values.get(name)) is not None}
            if len(whole) == len(group):
                given |= whole
                sources |= dict.fromkeys(group, source)
                break
    if warm_up_cap is not None and warm_up_cap <= given.get("per_day", warm_up_cap):
        given["per_day"], sources["per_day"] = warm_up_cap, Source.WARM_UP
    for source, mosts in ((Source.CEILING, ceiling), (Source.SERVICE, service)):
        for name, most in mosts.items():
            if given.get(name, most + 1) > most:
                given[name], sources[name] = most, source
    if given.get("gap_min", shortest_gap) < shortest_gap:
        given["gap_min"], given["gap_max"] = shortest_gap, max(shortest_gap, given["gap_max"])
        sources |= dict.fromkeys(("gap_min", "gap_max"), Source.PROFILE)
    return Effective(limits=Limits(**given), sources=sources)  # type: ignore[arg-type]  # each by its name
