"""A cluster under another layout of control groups; run by test_cgroups.py in a mount namespace of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path

import anyio

from slurm_agent_tools.devcluster import definition, lifecycle

GROUPS = "/sys/fs/cgroup"
CLEAR = ["umount", "--recursive", "--lazy", GROUPS]
# What is run, in this order, to change the layout of the machine to another one.
LAYOUTS: dict[str, list[list[str]]] = {
    "as it is": [],
    "a bare tmpfs": [CLEAR, ["mount", "-t", "tmpfs", "none", GROUPS]],
    "nothing mounted": [CLEAR],
    "version 2 alone": [CLEAR, ["mount", "-t", "cgroup2", "none", GROUPS]],
    "version 2 read-only": [CLEAR, ["mount", "-t", "cgroup2", "-o", "ro", "none", GROUPS]],
    "version 1 alone": [["umount", f"{GROUPS}/unified"]],
    "version 1 read-only": [
        ["mount", "-o", "remount,bind,ro", f"{GROUPS}/{name}"] for name in ("memory", "freezer", "cpuacct")
    ],
}
# It holds far more than the 100 MiB that it asks for. Polling looks every two seconds.
HOG = b"#!/bin/bash\n/usr/bin/python3 -c 'import time; held = bytearray(400 << 20); time.sleep(60)'\n"


def main(layout: str, folder: Path, version: str | None) -> None:
    """Print the memory limits, the text of cgroup.conf, and the state of a job over its memory, as one JSON document."""
    for argv in LAYOUTS[layout]:
        subprocess.run(argv, check=True)
    said: list[str] = []
    up = partial(lifecycle.up, folder, slurm=version, accounting=False, yes=True, say=said.append)
    try:
        cluster = anyio.run(up)
        status = anyio.run(lifecycle.status, folder)
        found = {
            "memory": asdict(status.memory) if status.memory else None,
            "nodes": status.nodes,
            "conf": (folder / "etc/cgroup.conf").read_text(),
            "state": _state_of_a_hog(cluster),
            "said": said,
        }
    finally:
        anyio.run(partial(lifecycle.down, folder, say=said.append))
    sys.stdout.write(json.dumps(found) + "\n")


def _state_of_a_hog(cluster: definition.Cluster) -> str:
    env = {"PATH": os.environ["PATH"], **cluster.environment()}
    call = partial(subprocess.run, env=env, cwd="/", capture_output=True, timeout=90)
    submit = cluster.as_user(["sbatch", "--parsable", "--wait", "-pcpu", "--mem=100", "-o", "/dev/null"])
    job = call(submit, input=HOG).stdout.decode().strip()
    for _ in range(50):
        told = call(["scontrol", "-o", "show", "job", job]).stdout.decode()
        state = re.search(r"JobState=(\w+)", told)
        if state is not None and state[1] != "COMPLETING":
            return state[1]
        time.sleep(0.1)
    return "unknown"


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3] or None)
