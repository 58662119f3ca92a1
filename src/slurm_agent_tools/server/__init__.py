"""The MCP server: publishes the tools and decides nothing."""
