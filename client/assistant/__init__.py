"""The MCP server: what an assistant may see and do, on the public API alone."""
