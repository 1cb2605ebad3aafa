"""Brings notifications to people outside of Paceline: by e-mail and by chat services, when each person wants them."""
