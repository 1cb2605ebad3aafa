"""People: the page of one's own, teams and invitations, and ways to log in."""
