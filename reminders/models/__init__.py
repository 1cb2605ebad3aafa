from reminders.models.followup import FollowUp, FollowUpStep
from reminders.models.media import Media
from reminders.models.reminder import Part, Reminder, ReminderAccount

__all__ = ["FollowUp", "FollowUpStep", "Media", "Part", "Reminder", "ReminderAccount"]
