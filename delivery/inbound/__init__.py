"""Reports of services: stored once, then handled."""
