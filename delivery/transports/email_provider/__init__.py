"""E-mail through a provider's HTTP API."""
