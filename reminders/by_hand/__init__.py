"""Sending a reminder by hand: the last look before it leaves, and the recipients who received it today."""
