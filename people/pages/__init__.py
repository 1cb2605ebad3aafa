"""The pages of teams and of one's own account."""
