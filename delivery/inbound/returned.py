"""Late failures: what services report after they took a message (SPEC L1). Pure.

Reports come late, twice and in any order. `worse` is the same for every order and any number of repetitions: the
earliest time counts, and the gravest kind with its reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from delivery.states import ReturnKind

GRAVITY: Mapping[ReturnKind, int] = {kind: place for place, kind in enumerate(ReturnKind)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A message that failed after its service took it: since when, how, and why."""

    at: datetime
    kind: ReturnKind
    reason: str = ""


def worse(known: Returned | None, told: Returned) -> Returned:
    """Return what two reports about one message say together; `known` is None before the first."""
    if known is None:
        return told
    gravest = max(known, told, key=lambda each: (GRAVITY[each.kind], each.reason))
    return Returned(at=min(known.at, told.at), kind=gravest.kind, reason=gravest.reason)


def stands_out(*, sent: int, returned: int, share: float, at_least: int) -> bool:
    """Decide whether so many messages came back that a person has to know."""
    return returned >= at_least and returned > share * sent
