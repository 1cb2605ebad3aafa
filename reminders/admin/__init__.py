"""Administration of reminders and their messages."""

from reminders.admin import approvals, reminders

__all__ = ["approvals", "reminders"]
