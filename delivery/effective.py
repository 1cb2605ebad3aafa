"""What an account holds itself to, and where each number comes from (SPEC P2). Pure.

A value of the account goes before its profile's, and that before the settings'. All that result apply at
once, and each may only make the account slower: the strictest wins.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from delivery.pacing import Limits

Values = Mapping[str, int | float | None]

# What goes together comes from one place: a shortest gap of one and a longest of another could cross.
GROUPS = (
    ("per_minute",),
    ("per_hour",),
    ("per_day",),
    ("gap_min", "gap_max"),
    ("batch_size", "batch_pause"),
)


class Source(StrEnum):
    """Where a number comes from."""

    ACCOUNT = "account"  # the account's own limits
    PROFILE = "profile"  # the profile that it picked
    SETTINGS = "settings"  # what the installation says where nothing else does
    WARM_UP = "warm_up"  # its day's cap, while it is new


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """The limits that hold, and the source of each that is set, by its name."""

    limits: Limits
    sources: Mapping[str, Source]


def effective(
    *, account: Values, profile: Values, settings: Values, warm_up_cap: int | None = None
) -> Effective:
    """The limits of one action from all that was said about them. None, like a missing name, says nothing."""
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
    return Effective(limits=Limits(**given), sources=sources)  # type: ignore[arg-type]  # each by its name
