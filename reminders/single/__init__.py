"""Messages that are sent one by one, without a reminder of their own."""
