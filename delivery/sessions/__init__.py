"""Sessions of accounts with their services: connect, ask, follow, read groups, archive."""
