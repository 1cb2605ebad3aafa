"""Reads Meta's messaging limit: how many people a portfolio may write to first in any 24 hours."""

import re
from collections.abc import Mapping

from delivery.transports.base import OwnLimits

FIELDS = ("whatsapp_business_manager_messaging_limit", "messaging_limit_tier")
TIER = re.compile(r"(?:TIER_)?(\d{1,9})(K|M)?", re.IGNORECASE)
TIMES = {"": 1, "K": 1_000, "M": 1_000_000}


def read(told: Mapping[str, object]) -> OwnLimits:
    """Return the limit in an answer: a number or a tier such as TIER_2K. Unlimited, and -1, are none."""
    values = [told[name] for name in FIELDS if name in told]
    return OwnLimits(people_per_24_hours=_people(values[0]) if values else None, said=dict(told))


def _people(value: object) -> int | None:
    if isinstance(value, Mapping):
        return next(filter(None, map(_people, value.values())), None)
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    found = TIER.fullmatch(str(value))
    if found is None:
        return None
    return int(found[1]) * TIMES[(found[2] or "").upper()] or None
