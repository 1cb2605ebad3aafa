"""Administration of reminders and their messages."""

from reminders.admin import reminders

__all__ = ["reminders"]
