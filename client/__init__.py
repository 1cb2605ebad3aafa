"""The command line client and the MCP server. Both know the public API alone, so they work from anywhere."""
