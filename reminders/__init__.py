"""Reminders: their message, their recipients and their schedule."""
