"""Webhooks out: events of `accounts/outbox.py` are signed and delivered at least once, in order per run."""
