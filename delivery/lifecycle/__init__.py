"""A run's life, one function per move, used by every page, action, command and the engine.

Each locks the run, refuses a move that `states.py` does not allow, changes the run and its targets in one
transaction, and wakes, tells and announces once that is committed.

The moves: `people`, `doubts`, `starts`, `windows`, `daily_caps`, `under_way`, `of_accounts`.
The steps that they share: `locking`, `going`, `holding`, `ending`, `telling`.
"""

from delivery.lifecycle.daily_caps import end_full_days
from delivery.lifecycle.doubts import confirm, resend
from delivery.lifecycle.ending import CANCELED
from delivery.lifecycle.going import window_of
from delivery.lifecycle.locking import WrongStateError
from delivery.lifecycle.of_accounts import pause_account, start_account, stop_account
from delivery.lifecycle.people import archive, cancel, pause, resume, retry_failed
from delivery.lifecycle.starts import end_empty, miss, start, start_waiting, wait_behind
from delivery.lifecycle.under_way import settle, trip, withdraw
from delivery.lifecycle.windows import close_window, open_window

__all__ = [
    "CANCELED",
    "WrongStateError",
    "archive",
    "cancel",
    "close_window",
    "confirm",
    "end_empty",
    "end_full_days",
    "miss",
    "open_window",
    "pause",
    "pause_account",
    "resend",
    "resume",
    "retry_failed",
    "settle",
    "start",
    "start_account",
    "start_waiting",
    "stop_account",
    "trip",
    "wait_behind",
    "window_of",
    "withdraw",
]
