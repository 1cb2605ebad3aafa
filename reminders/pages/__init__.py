"""The pages of reminders, the wizard and follow-ups."""
