"""Make the bundle for Claude Desktop and other clients that take MCPB files: `make bundle` writes dist/*.mcpb.

The client's own uv makes the environment when the bundle is installed: the wheel lies in it, and every package that it
needs is held to the version that was tested here. The fields of the form become settings by the environment.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slurm_agent_tools.api.catalogue import TOOLS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PIN = re.compile(r"^(?P<pin>[a-z0-9-]+==[^ ]+(?: ; [^\\]+?)?) \\$", re.MULTILINE)
MOMENT = (2026, 1, 1, 0, 0, 0)  # of every file in it: the same sources make the same bundle

FIELDS = {
    "project_folder": (
        "directory",
        "Project folder",
        "Your experiments: scripts, logs and results are here",
        "${HOME}",
    ),
    "host": (
        "string",
        "Login node",
        "A cluster over SSH: a name of ~/.ssh/config or an address; empty: this machine",
        "",
    ),
    "user": ("string", "User on the cluster", "Empty: as ~/.ssh/config says", ""),
    "remote_root": (
        "string",
        "Project folder on the cluster",
        "Needed with a login node, such as work/experiments",
        "",
    ),
    "slurm_folder": ("string", "Folder of Slurm's commands", "Needed where sbatch is not on PATH", ""),
}
"""The form: name -> (kind, title, what it is, what it begins with)."""

VARIABLES = {
    "SLURM_AGENT_PROJECT_ROOT": "project_folder",
    "SLURM_AGENT_CLUSTERS__CLUSTER__HOST": "host",
    "SLURM_AGENT_CLUSTERS__CLUSTER__USER": "user",
    "SLURM_AGENT_CLUSTERS__CLUSTER__REMOTE_ROOT": "remote_root",
    "SLURM_AGENT_SLURM__BIN_DIR": "slurm_folder",
}


def manifest() -> dict[str, Any]:
    """What the client reads of the bundle."""
    start = {
        "command": "uv",
        "args": ["run", "--directory", "${__dirname}", "server/main.py"],
        "env": {"PYTHONPATH": "", **{name: f"${{user_config.{field}}}" for name, field in VARIABLES.items()}},
    }
    return {
        "manifest_version": "0.4",
        "name": PROJECT["name"],
        "display_name": "Slurm",
        "version": PROJECT["version"],
        "description": PROJECT["description"],
        "author": {"name": "slurm-agent-tools contributors"},
        "license": PROJECT["license"],
        "keywords": PROJECT["keywords"],
        "server": {"type": "uv", "entry_point": "server/main.py", "mcp_config": start},
        "tools": [{"name": tool.name, "description": tool.title} for tool in TOOLS],
        "prompts_generated": True,
        "compatibility": {
            "platforms": ["darwin", "linux", "win32"],
            "runtimes": {"python": PROJECT["requires-python"]},
        },
        "user_config": {
            name: {
                "type": kind,
                "title": title,
                "description": about,
                "default": first,
                "required": kind == "directory",
            }
            for name, (kind, title, about, first) in FIELDS.items()
        },
    }


def project(wheel: str) -> str:
    """What uv reads: the wheel beside it, and one version of each package."""
    pins = [match["pin"] for match in PIN.finditer((ROOT / "requirements-run.txt").read_text(encoding="utf-8"))]
    lines = [
        "[project]", 'name = "slurm-agent-tools-bundle"', f'version = "{PROJECT["version"]}"',
        f'requires-python = "{PROJECT["requires-python"]}"', f'dependencies = ["{PROJECT["name"]}"]', "",
        "[tool.uv]", "package = false",
        "constraint-dependencies = [", *(f"    {json.dumps(pin)}," for pin in pins), "]", "",
        "[tool.uv.sources]", f'{PROJECT["name"]} = {{ path = "{wheel}" }}',
    ]  # fmt: skip
    return "\n".join([*lines, ""])


def wheel(folder: Path) -> Path:
    """The wheel of these sources, built there."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(words, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def contents(built: Path) -> Iterator[tuple[str, bytes]]:
    """Every file of the bundle by its name."""
    yield "manifest.json", json.dumps(manifest(), indent=2).encode() + b"\n"
    yield "pyproject.toml", project(built.name).encode()
    yield "server/main.py", (ROOT / "scripts/mcpb/main.py").read_bytes()
    yield built.name, built.read_bytes()
    yield "LICENSE", (ROOT / "LICENSE").read_bytes()


def main() -> int:
    """Write the bundle; the folder is the argument, dist without one."""
    parser = argparse.ArgumentParser(description="Make the MCPB bundle")
    parser.add_argument("folder", nargs="?", default=str(ROOT / "dist"))
    target = Path(parser.parse_args().folder) / f"{PROJECT['name']}-{PROJECT['version']}.mcpb"
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        made = Path(name) / target.name
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as bundle:
            for path, content in contents(wheel(Path(name))):
                bundle.writestr(zipfile.ZipInfo(path, MOMENT), content, zipfile.ZIP_DEFLATED)
        shutil.move(made, target)
    print(f"{target} ({target.stat().st_size // 1024} KB)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
