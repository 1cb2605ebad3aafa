"""Middleware and filters that every request passes through, before and after the pages."""
