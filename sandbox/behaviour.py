"""The behaviour of an account of the sandbox: its settings, their ranges, and how they are read from JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

MAX_COUNTED = 20_000  # the highest limit per minute or hour that can be watched, see account.Recent


class BehaviourError(ValueError):
    """Raised for a value that no behaviour can have; the text is for the person who set it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviour:
    """Every change applies to the next request. A rate is a share of the requests, from 0 to 1."""

    latency_ms: int = 0  # before every answer
    jitter_ms: int = 0  # up to so much more
    error_rate: float = 0.0  # 500 before accepting: not delivered
    error_rate_after: float = 0.0  # 500 after accepting: delivered
    rate_limit: int = 0  # accepted messages per minute before 429; 0 is none
    not_connected: bool = False  # 503
    ban_above_per_minute: int = 0  # the hidden limits: one message more and the account is banned; 0 is none
    ban_above_per_hour: int = 0
    reject: frozenset[str] = frozenset()  # addresses answered with 422
    unknown: frozenset[str] = frozenset()  # addresses answered with 404
    idempotent: bool = True  # whether an Idempotency-Key is honoured
    hang: float = 0.0  # never answers
    hang_delivers: bool = True  # whether a request that hangs was delivered
    cut: float = 0.0  # delivers, then closes the connection in the middle of the answer
    garbage: float = 0.0  # delivers, then answers 200 with something that is not JSON
    lock_first_contacts: bool = False  # takes messages to new chats, and reports them as failed
    lock_ms: int = 86_400_000  # how long that lasts
    hides_lock: bool = False  # whether it keeps the lock to itself when asked
    new_chats: int = 0  # new chats in a cycle before 422; 0 is any number
    new_chats_ms: int = 30 * 86_400_000  # the length of the cycle
    fail_late: float = 0.0  # takes a message, and reports it as failed `late_ms` later: not delivered
    bounce: float = 0.0  # the same, and reports that nobody is at the address
    complain: float = 0.0  # delivers it, and reports it as unwanted `late_ms` later
    late_ms: int = 2_000
    cannot_fetch: bool = False  # reaches no address of a file: 424, nothing was accepted
    fetches_late: bool = False  # takes a message first, and then fetches its file, or reports it as failed
    groups: int = 12
    seed: int = 0  # of the random numbers; 0 differs at every start


MOST: Mapping[str, int] = {
    "latency_ms": 600_000,
    "jitter_ms": 600_000,
    "rate_limit": MAX_COUNTED,
    "ban_above_per_minute": MAX_COUNTED,
    "ban_above_per_hour": MAX_COUNTED,
    "lock_ms": 30 * 86_400_000,
    "new_chats": MAX_COUNTED,
    "new_chats_ms": 90 * 86_400_000,
    "late_ms": 86_400_000,
    "groups": 100_000,
    "seed": 2**63 - 1,
}
KINDS: Mapping[str, object] = {field.name: field.type for field in fields(Behaviour)}


def changed(old: Behaviour, wishes: Mapping[str, Any]) -> Behaviour:
    """Return `old` with the changes of a JSON object; raise BehaviourError for a value that is not possible."""
    return replace(old, **{name: _value(name, wish) for name, wish in wishes.items()})


def as_json(behaviour: Behaviour) -> dict[str, Any]:
    """Return `behaviour` as a JSON object, sets as sorted lists."""
    return {
        name: sorted(value) if isinstance(value, frozenset) else value
        for name, value in asdict(behaviour).items()
    }


def _value(name: str, wish: object) -> Any:
    kind = KINDS.get(name)
    if kind is None:
        raise BehaviourError(f"There is no behaviour named {name}.")
    if kind is bool:
        return _flag(name, wish)
    if kind is int:
        return _whole(name, wish)
    if kind is float:
        return _rate(name, wish)
    return _addresses(name, wish)


def _flag(name: str, wish: object) -> bool:
    if not isinstance(wish, bool):
        raise BehaviourError(f"{name} is true or false.")
    return wish


def _whole(name: str, wish: object) -> int:
    if isinstance(wish, bool) or not isinstance(wish, int) or not 0 <= wish <= MOST[name]:
        raise BehaviourError(f"{name} is a whole number from 0 to {MOST[name]}.")
    return wish


def _rate(name: str, wish: object) -> float:
    """Return a share; true and false stand for always and never."""
    if not isinstance(wish, int | float) or not 0 <= wish <= 1:
        raise BehaviourError(f"{name} is a number from 0 to 1.")
    return float(wish)


def _addresses(name: str, wish: object) -> frozenset[str]:
    if not isinstance(wish, list) or not all(isinstance(address, str) for address in wish):
        raise BehaviourError(f"{name} is a list of addresses.")
    return frozenset(wish)
