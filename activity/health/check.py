"""One check: a thing that must work, and whether it does."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The result that /readyz, `doctor` and the metrics show for one thing."""

    name: str
    ok: bool
    detail: str  # names no host
    cause: str = ""  # for the person at the terminal alone
    seen: int | None = None  # seconds since its last sign of life, for what gives signs
    needed: bool = True  # without it pages cannot be served; otherwise pages stay up and a person has to look
