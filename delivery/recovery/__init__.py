"""Tools for a restore: stop all sending, find messages in doubt, find doubles."""
