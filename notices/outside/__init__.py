"""Speaks to chat services through apprise, in a program of its own that can reach nothing but the services."""
