"""Matrix, through any homeserver."""
