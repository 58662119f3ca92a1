"""A memory server in plain JSON-RPC, with the tool of mcp-memory-service's HTTP server; keeps what it gets in a file.

python memories.py FILE [refuse | double | silent [NOTE] | bare]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

KEPT, WAY = Path(sys.argv[1]), (sys.argv[2:] or [""])[0]
TAKES = {name: {} for name in ("content", "tags", "memory_type", "metadata", "client_hostname")}
SCHEMA = {"type": "object", "properties": TAKES, "required": ["content"]}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        return {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "m", "version": "1"},
        }
    if method == "tools/list":
        name = "recall" if WAY == "bare" else "store_memory"
        return {"tools": [{"name": name, "inputSchema": SCHEMA}]}
    return stored(params["arguments"]) if method == "tools/call" else None


def stored(given: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = {"success": True, "message": "Memory stored successfully"}
    if WAY == "refuse":
        told = {"success": False, "message": "the disk is full"}
    elif WAY == "double":
        told = {"success": False, "message": "Duplicate content detected (exact match)"}
    else:
        assert given.keys() <= TAKES.keys()
        with KEPT.open("a") as file:
            file.write(json.dumps(given) + "\n")
    return {"content": [{"type": "text", "text": json.dumps(told)}], "structuredContent": {"result": told}}


for line in sys.stdin:
    asked = json.loads(line)
    if WAY == "silent" and asked["method"] == "tools/call":
        for note in sys.argv[3:]:
            Path(note).touch()
        continue
    if "id" not in asked:
        continue
    found = answer(asked["method"], asked.get("params") or {})
    error = {"code": -32601, "message": "Method not found"}
    reply = {"jsonrpc": "2.0", "id": asked["id"]} | ({"error": error} if found is None else {"result": found})
    sys.stdout.write(json.dumps(reply) + "\n")
    sys.stdout.flush()
