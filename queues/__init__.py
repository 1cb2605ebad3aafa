"""Queues: lists of items, each with its own recipient, text, time and sender."""
