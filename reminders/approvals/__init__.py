"""Approval of reminders: what is approved, asking, the check when a moment is due, and what an approval does."""
