"""The life of a run: one function per move, used by the engine and, through `run_actions`, by all that people press.

Each function locks the run, refuses a move that `states.py` does not allow, and changes the run and its targets in
one transaction. After the commit it wakes the accounts, notifies the owner and announces the change to open pages.

The moves: `people` (by a person), `system` (by the engine and the tick), `accounts` (with an account), `day_caps`.
The steps that they share: `steps`.
"""

from delivery.lifecycle.accounts import lift_health, pause_account, start_account, stop_account
from delivery.lifecycle.day_caps import end_full_days
from delivery.lifecycle.many import confirm_all, resend_all
from delivery.lifecycle.people import (
    archive,
    cancel,
    change_hours,
    change_window,
    confirm,
    pause,
    resend,
    resume,
    retry_failed,
    unarchive,
    undo,
)
from delivery.lifecycle.steps import CANCELED, WrongStateError, in_doubt, window_of
from delivery.lifecycle.system import (
    close_window,
    open_window,
    settle,
    start,
    start_waiting,
    take_back,
    trip,
    wait_for_accounts,
    withdraw,
)

__all__ = [
    "CANCELED",
    "WrongStateError",
    "archive",
    "cancel",
    "change_hours",
    "change_window",
    "close_window",
    "confirm",
    "confirm_all",
    "end_full_days",
    "in_doubt",
    "lift_health",
    "open_window",
    "pause",
    "pause_account",
    "resend",
    "resend_all",
    "resume",
    "retry_failed",
    "settle",
    "start",
    "start_account",
    "start_waiting",
    "stop_account",
    "take_back",
    "trip",
    "unarchive",
    "undo",
    "wait_for_accounts",
    "window_of",
    "withdraw",
]
