"""Says in words why an account or a run waits, and what happened."""
