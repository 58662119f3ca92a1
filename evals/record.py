"""Stand between an MCP client and a server over standard input, and write a transcript of the tools that are called.

    python -m evals.record calls.jsonl -- slurm-agent-tools serve

Every line passes as it is. Each call becomes a line of calls.jsonl once it is answered: `tool` and `arguments`, which
`python -m evals.run` plays again, and `asked` and `answered`, the bytes as they are counted there.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, Any

from evals.transcript import size


class Recorder:
    """Requests by their id, and a line for each that was answered."""

    def __init__(self, path: Path) -> None:
        """Lines are added to `path`."""
        self._path = path
        self._open: dict[str, dict[str, Any]] = {}

    def asked(self, line: bytes) -> None:
        """A line of the client."""
        message = _message(line)
        if message.get("method") == "tools/call":
            told = message.get("params", {})
            self._open[str(message.get("id"))] = {"tool": told.get("name"), "arguments": told.get("arguments") or {}}

    def answered(self, line: bytes) -> None:
        """A line of the server."""
        message = _message(line)
        call = self._open.pop(str(message.get("id")), None) if "method" not in message else None
        if call is None:
            return
        body = message.get("result", message.get("error", {}))
        text = "".join(str(part.get("text", "")) for part in body.get("content", []))
        structured = size(body["structuredContent"]) if "structuredContent" in body else size(body)
        call |= {"asked": size(call["arguments"]), "answered": max(structured, len(text.encode()))}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(call, ensure_ascii=False) + "\n")


def _message(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def main() -> int:
    """Start the server, pass every line both ways, and end with it."""
    words = sys.argv[1:]
    if len(words) < 3 or words[1] != "--":
        print("python -m evals.record FILE -- SERVER [WORD ...]", file=sys.stderr)
        return 2
    recorder = Recorder(Path(words[0]))
    server = subprocess.Popen(words[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    there, back = server.stdin, server.stdout
    if there is None or back is None:
        raise RuntimeError("the server has no pipes")

    def forth() -> None:
        _pass(sys.stdin.buffer, there, recorder.asked)
        there.close()

    threading.Thread(target=forth, daemon=True).start()
    _pass(back, sys.stdout.buffer, recorder.answered)
    return server.wait()


def _pass(source: IO[bytes], target: IO[bytes], seen: Any) -> None:
    for line in source:
        seen(line)
        target.write(line)
        target.flush()


if __name__ == "__main__":
    raise SystemExit(main())
