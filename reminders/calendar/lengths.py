"""How long the entries of a calendar take, kept for a minute.

A forecast asks the database about a dozen questions, and a week may have thirty of them: too many for one page. So a
page makes few and shows the other entries without a length of their own; then it asks for the rest
(static/js/recount.js) and is drawn again from what was kept meanwhile.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from datetime import timedelta

import structlog
from redis.exceptions import RedisError

from config.redis.client import client

log = structlog.get_logger(__name__)

KEPT_SECONDS = 60
AT_ONCE = 1  # forecasts that are made for a page itself
SHORTEST = timedelta(minutes=1)
UNKNOWN = timedelta(minutes=15)  # the length that is drawn where none is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Length:
    """How long a firing takes, or how long a run will still take, with what else was forecast."""

    seconds: float = UNKNOWN.total_seconds()
    targets: int | None = None
    fits: bool = True
    known: bool = True

    @property
    def lasts(self) -> timedelta:
        return timedelta(seconds=self.seconds)


NOT_YET = Length(known=False)


@dataclass(slots=True, kw_only=True)
class Lengths:
    """Gives kept lengths by name, and makes at most `new` others; None means as many as are asked for."""

    new: int | None = None
    _kept: dict[str, Length] = field(default_factory=dict)

    def look_up(self, names: Iterable[str]) -> None:
        """Read the kept lengths of these entries in one go."""
        asked = list(names)
        try:
            found = client().mget([_key(name) for name in asked]) if asked else []
        except RedisError:
            return
        self._kept |= {
            name: Length(**json.loads(said))
            for name, said in zip(asked, found, strict=True)
            if said is not None
        }

    def of(self, name: str, make: Callable[[], Length]) -> Length:
        """Return the kept length, a new one, or `NOT_YET` where no more are to be made."""
        if name in self._kept:
            return self._kept[name]
        if self.new is not None:
            if self.new <= 0:
                return NOT_YET
            self.new -= 1
        return self._keep(name, make())

    def _keep(self, name: str, made: Length) -> Length:
        self._kept[name] = made
        try:
            client().set(_key(name), json.dumps(asdict(made)), ex=KEPT_SECONDS)
        except RedisError:
            log.warning("length_not_kept", name=name)
        return made


def _key(name: str) -> str:
    return f"paceline:length:{name}"
