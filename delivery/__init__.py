"""Sends messages: a pure core at the top, and a folder for each part of the work."""
