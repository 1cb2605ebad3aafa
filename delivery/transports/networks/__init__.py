"""Connections that transports open: allowed addresses, bounds on servers, and why a connection failed."""
