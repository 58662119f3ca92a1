"""Each way to install it, on a machine that has Python and nothing else, as an ordinary user.

    python3 install_ways.py DIST      the folder with the wheel and the bundle

Each way ends in a client that says `initialize`, lists the tools and calls one. How long each took is printed. The first
that fails ends it. Only the standard library is there; the client is run by the environment of the first way.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = (ROOT / "docs/get-started/install.md").read_text(encoding="utf-8")
HOME = Path.home()
CLIENT = HOME / "tools/bin/python"  # has the SDK: the tools need it
VERSIONS = HOME / "versions.txt"
HELD = {"PIP_CONSTRAINT": str(VERSIONS), "UV_CONSTRAINT": str(VERSIONS)}  # for tools that check no hashes


def typed(command: str, env: Mapping[str, str] = HELD) -> None:
    """A command in the terminal of somebody who has just logged in."""
    words = ["bash", "-lc", command]
    done = subprocess.run(words, cwd=ROOT, env=os.environ | env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"$ {command}\n{done.stdout}{done.stderr}exit code {done.returncode}")


def of_the_page(begin: str, wheel: Path | None = None) -> str:
    """The page's command that begins so, with the wheel in place of the folder of the sources."""
    end = r" \." if wheel else ""
    (command,) = set(re.findall(rf"`({re.escape(begin)}[^`]*){end}`", PAGE))
    return f"{command} {shlex.quote(str(wheel))}" if wheel else command


@contextmanager
def way(name: str) -> Iterator[None]:
    """Say how long it took."""
    begun = time.monotonic()
    yield
    print(f"{name:24} {time.monotonic() - begun:6.1f} s", flush=True)  # noqa: T201 - what it is run for


def answers(name: str, command: str, cwd: Path, env: Mapping[str, str] = HELD) -> None:
    """A client starts it, in the environment of somebody who has just logged in."""
    login = subprocess.run(["bash", "-lc", "env -0"], capture_output=True, text=True, check=True).stdout
    given = dict(pair.split("=", 1) for pair in login.split("\0") if "=" in pair)
    words = [CLIENT, HERE / "mcp_client.py", *shlex.split(command)]
    with way(name):
        done = subprocess.run(words, cwd=cwd, env=given | env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{command}\n{done.stdout}{done.stderr}")


def as_the_manifest_says(bundle: Path, project: Path) -> tuple[str, dict[str, str]]:
    """What Claude Desktop starts: the command of the manifest and its environment, the form as it came but the folder."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    start = manifest["server"]["mcp_config"]
    form = {name: field["default"] for name, field in manifest["user_config"].items()} | {
        "project_folder": str(project)
    }
    names = {"__dirname": str(bundle), "HOME": str(HOME), **{f"user_config.{key}": form[key] for key in form}}

    def filled(text: str) -> str:
        return re.sub(r"\$\{([\w.]+)\}", lambda found: names[found[1]], text)

    words = [start["command"], *map(filled, start["args"])]
    return shlex.join(words), {name: filled(value) for name, value in start["env"].items()}


def main() -> None:
    """All ways, in an order in which each finds what it needs."""
    dist = Path(sys.argv[1])
    (wheel,) = dist.glob("*.whl")
    (bundle,) = dist.glob("*.mcpb")
    project = HOME / "first"
    project.mkdir()
    (project / "train.yaml").write_text("epochs: 3\n", encoding="utf-8")

    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    VERSIONS.write_text("\n".join(line.partition(" \\")[0] for line in lines if line[:1].isalpha()), encoding="utf-8")

    with way("pip: installed"):
        by_hash = of_the_page("pip install --require-hashes")
        typed(f"python3 -m venv ~/tools && . ~/tools/bin/activate && {by_hash}", {})
        typed(f". ~/tools/bin/activate && {of_the_page('pip install --no-index', wheel)}", {})
    answers("pip: answers", f"{HOME}/tools/bin/slurm-agent-tools serve", project)

    with way("uv itself, by pipx"):
        typed("pipx install uv")
    with ThreadPoolExecutor() as beside:  # pipx takes as long as all that uv does, and shares nothing with it
        others = beside.submit(without_installing, bundle, wheel, project)
        with way("pipx: installed"):
            typed(of_the_page("pipx install", wheel))
        answers("pipx: answers", "slurm-agent-tools serve", project)
        typed("pipx uninstall slurm-agent-tools")
        others.result()

    with way("uv tool: installed"):
        typed(of_the_page("uv tool install", wheel))
    answers("uv tool: answers", "slurm-agent-tools serve", project)


def without_installing(bundle: Path, wheel: Path, project: Path) -> None:
    """What leaves no command: uvx, and the bundle in Claude Desktop."""
    answers("uvx: answers", f"uvx --quiet --from {wheel} slurm-agent-tools serve", project)
    unpacked = HOME / "bundle"
    zipfile.ZipFile(bundle).extractall(unpacked)
    command, env = as_the_manifest_says(unpacked, project)
    answers("bundle: first start", command, Path("/"), env)
    answers("bundle: next start", command, Path("/"), env)


if __name__ == "__main__":
    main()
