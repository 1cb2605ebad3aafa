"""Removes old details: what may go, and how it goes in slices. `manage.py prune` and beat call it."""
