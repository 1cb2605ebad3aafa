"""Checks whether Paceline can do its work, for /readyz, `doctor` and the metrics."""
