"""Administration of reminders and what they say."""

from reminders.admin import reminders

__all__ = ["reminders"]
