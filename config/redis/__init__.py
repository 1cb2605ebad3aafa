"""Connections of processes to Redis: its address, connections with deadlines, the broker, and queuing work."""
