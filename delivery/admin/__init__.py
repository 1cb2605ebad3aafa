"""Administration of runs and their targets, and of what accounts do."""

from delivery.admin import accounts, runs, targets

__all__ = ["accounts", "runs", "targets"]
