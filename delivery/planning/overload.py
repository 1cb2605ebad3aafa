"""Which days of an account have more planned than they may have. Pure."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

Room = Callable[[int], int | None]  # messages that may still leave on a day, by its number from today


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Targets that a run has planned for a day, of so many messages each."""

    run_id: int
    day: int
    targets: int
    parts: int

    @property
    def messages(self) -> int:
        return self.targets * self.parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """What does not fit into its day: of a load, all but the first `stays` targets."""

    load: Load
    stays: int

    @property
    def targets(self) -> int:
        return self.load.targets - self.stays


def over(loads: Iterable[Load], room: Room) -> Mapping[int, int]:
    """The days that have too much planned, each with the messages that it has."""
    planned: dict[int, int] = defaultdict(int)
    for load in loads:
        planned[load.day] += load.messages
    return {day: count for day, count in sorted(planned.items()) if _above(count, room(day))}


def overflows(loads: Sequence[Load], room: Room) -> list[Overflow]:
    """What has to go so that no day has too much; on each, what comes first in `loads` stays."""
    left: dict[int, int | None] = {}
    found = []
    for load in loads:
        space = left.setdefault(load.day, room(load.day))
        if space is None:
            continue
        stays = min(load.targets, space // load.parts)
        left[load.day] = space - stays * load.parts
        if stays < load.targets:
            found.append(Overflow(load=load, stays=stays))
    return found


def _above(count: int, room: int | None) -> bool:
    return room is not None and count > room
