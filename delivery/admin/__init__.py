"""Administration of runs and their targets, and of accounts."""

from delivery.admin import accounts, runs, targets

__all__ = ["accounts", "runs", "targets"]
