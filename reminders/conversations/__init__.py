"""Replies: who answered what, STOP, and the second message."""
