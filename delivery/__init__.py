"""How messages are sent: a pure core at the top, and a room for each part of the work."""
