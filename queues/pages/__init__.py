"""The pages of queues."""
