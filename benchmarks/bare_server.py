"""The least that a server of the MCP SDK can be: one tool, standard input and output."""

from mcp.server import MCPServer

server = MCPServer("bare", log_level="WARNING")


@server.tool()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}"


if __name__ == "__main__":
    server.run()
