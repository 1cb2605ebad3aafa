"""Sends messages: one pump per account takes its lease, permits and targets, sends and records."""
