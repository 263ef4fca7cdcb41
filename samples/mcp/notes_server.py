"""A small MCP server over stdio, for `McpSource` to use: notes that are kept as long as it runs."""

from mcp.server import MCPServer

server = MCPServer("notes")
NOTES: dict[str, str] = {"todo": "Feed Rex."}


@server.tool()
def read_note(name: str) -> str:
    """The text of a note."""
    return NOTES.get(name, "there is no such note")


@server.tool()
def write_note(name: str, text: str) -> str:
    """Write a note, over what it said before."""
    NOTES[name] = text
    return f"wrote {name}"


if __name__ == "__main__":
    server.run()
