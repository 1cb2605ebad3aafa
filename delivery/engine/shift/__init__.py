"""One pump's minute with one account."""
