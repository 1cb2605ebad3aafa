"""The practice gateway that comes with Paceline."""
