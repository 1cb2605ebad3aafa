"""Test messages to one's own address."""
