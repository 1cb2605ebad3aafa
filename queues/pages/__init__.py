"""The pages of queues: list, one queue with its items, one item, and the import of a file."""
