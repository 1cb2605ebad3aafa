"""Tests of the command line client and the MCP server, against a real server."""
