"""Moves the rest of runs from one account to others: the plan, the move, its forecast and its words (SPEC S8)."""
