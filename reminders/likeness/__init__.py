"""Measures how alike the texts of a reminder are, and warns where many people would get nearly the same."""
