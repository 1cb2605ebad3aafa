"""Programs to use instead of Paceline, to compare with: each takes the same targets to the same receiver."""
