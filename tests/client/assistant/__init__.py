"""Tests of the MCP server, as a process, with the official client library."""
