"""Items of queues as targets of runs: adds them, changes them until they have begun, and withdraws them."""

from delivery.items.targets import (
    Content,
    NewTarget,
    add,
    announce,
    contents_of,
    counts,
    hold,
    lock_runs,
    make,
    move,
    part_with,
    replan,
    reserve,
    wake,
    withdraw,
    write,
)
from delivery.lifecycle.item_events import LATER, items_changed
from delivery.states import WITHDRAWN

__all__ = [
    "LATER",
    "WITHDRAWN",
    "Content",
    "NewTarget",
    "add",
    "announce",
    "contents_of",
    "counts",
    "hold",
    "items_changed",
    "lock_runs",
    "make",
    "move",
    "part_with",
    "replan",
    "reserve",
    "wake",
    "withdraw",
    "write",
]
