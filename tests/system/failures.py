"""Jobs that truly fail, one for each way that can be had here: what they run, and what is done to them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

import anyio
from tests.system.faces import Place

from slurm_agent_tools.devcluster import lifecycle

SMALL = "small"  # the folder of the project that holds next to nothing
PYTHON = "/usr/bin/python3"

PROGRAMS = {
    "hog": """
        kept = []
        while True:
            kept.append(bytearray(8 << 20))
        """,
    "imports": """
        import json
        import torch_of_nowhere
        """,
    "opens": """
        def main():
            with open("data/train.csv") as file:
                print(len(file.read()))
        main()
        """,
    "reads_what_it_may_not": """
        print(open("/etc/shadow").read())
        """,
    "fills": f"""
        with open("{SMALL}/checkpoint.bin", "wb") as file:
            for _ in range(1000):
                file.write(bytes(65536))
        """,
    "takes_options": """
        import argparse
        parser = argparse.ArgumentParser()
        parser.add_argument("--epochs", type=int)
        parser.parse_args()
        """,
    "loads_a_library": """
        import ctypes
        ctypes.CDLL("libsolver_of_nowhere.so.3")
        """,
    "listens_twice": """
        import socket
        first = socket.create_server(("127.0.0.1", 0))
        second = socket.create_server(first.getsockname())
        """,
    "reads_null": """
        import ctypes
        ctypes.string_at(0)
        """,
    "maps_a_short_file": """
        import mmap, os
        with open("mapped.bin", "w+b") as file:
            file.truncate(8192)
            held = mmap.mmap(file.fileno(), 8192)
            os.ftruncate(file.fileno(), 0)
            held[4096]
        """,
    "diverges": """
        import math
        weight = 1.0
        for step in range(2000):
            loss = weight * weight
            weight -= 2.5 * 2 * weight
            if step % 100 == 0:
                print(f"step {step} loss {loss:.4g}", flush=True)
            if math.isnan(loss):
                raise FloatingPointError(f"loss is {loss} at step {step}")
        """,
    "downloads": """
        import urllib.request
        urllib.request.urlopen("http://data.nowhere.invalid/set.tar.gz", timeout=5)
        """,
    "raises": """
        def batches(rows, size):
            return [rows[start : start + size] for start in range(0, len(rows), size)]

        print("WARNING: no GPU, an error of rounding may follow", flush=True)
        batches([1, 2, 3], 0)
        """,
    "ranks": """
        import os, time
        print("rank", os.environ["SLURM_PROCID"], "is up", flush=True)
        time.sleep(0.5)
        if os.environ["SLURM_PROCID"] == "1":
            shares = {"left": 1}
            print(shares["right"])
        time.sleep(60)
        """,
    "catches": """
        import sys, traceback
        try:
            open("optional.cfg")
        except OSError:
            traceback.print_exc()
        print("WARNING: Could not load dynamic library 'libnvinfer.so.7'", file=sys.stderr)
        print("accuracy: 0.91")
        """,
}


@dataclass(frozen=True)
class Failure:
    """A job, the category that is right, and text that the evidence must show."""

    name: str
    category: str
    body: str
    shows: str = ""
    options: tuple[str, ...] = ()
    ends: bool = True
    after: str | None = None
    then: Callable[[Place, str, ExitStack], None] | None = None


def program(name: str, words: str = "") -> str:
    return f"{PYTHON} programs/{name}.py {words}"


def has_state(place: Place, job_id: str, *wanted: str) -> None:
    for _ in range(600):
        if place.slurm("squeue", "-h", "-t", "all", "-j", job_id, "-o", "%T") in wanted:
            return
        time.sleep(0.1)
    raise AssertionError(f"{job_id} was never {wanted}")


def cancel(place: Place, job_id: str, _: ExitStack) -> None:
    has_state(place, job_id, "RUNNING")
    place.slurm("scancel", job_id)


def shorten(place: Place, job_id: str, _: ExitStack) -> None:
    """The administrator moves its end to now: a limit is whole minutes, and a minute is long for a test."""
    has_state(place, job_id, "RUNNING")
    env = {"PATH": os.environ["PATH"], **place.cluster.environment()}
    argv = ["scontrol", "update", f"jobid={job_id}", "EndTime=now+5"]
    subprocess.run(argv, env=env, cwd="/", timeout=60, check=True)


def preempt(place: Place, job_id: str, _: ExitStack) -> None:
    has_state(place, job_id, "RUNNING")
    place.slurm("sbatch", "-pspecial", "--qos=high", "--exclusive", "-o/dev/null", "--wrap=sleep 1")


def kill_node(place: Place, job_id: str, after: ExitStack) -> None:
    """Its slurmd dies, and comes back when the test is over."""
    has_state(place, job_id, "RUNNING")
    daemon = f"slurmd.{place.slurm('squeue', '-h', '-j', job_id, '-o', '%N')}"
    after.callback(anyio.run, partial(lifecycle.start_daemon, place.cluster, daemon))
    anyio.run(partial(lifecycle.signal_daemon, place.cluster, daemon, signal.SIGKILL))


LONG = "echo working; sleep 600"
FAILURES = [
    # The slowest comes first: the controller gives a node that is gone some forty seconds.
    Failure("node-killed", "node-failure", "echo working; sleep 90", options=("-pgpu", "--no-requeue"), then=kill_node),
    Failure("time", "time-limit", LONG, then=shorten),
    Failure("memory", "host-out-of-memory", program("hog"), options=("--mem=100",)),
    Failure("memory-of-a-step", "host-out-of-memory", f"srun {program('hog')}", options=("--mem=100",)),
    Failure("preempted", "preempted", LONG, options=("-pspecial", "--qos=scavenger", "--exclusive"), then=preempt),
    Failure("cancelled", "cancelled", LONG, then=cancel),
    Failure("import", "missing-module", program("imports"), "torch_of_nowhere"),
    Failure("file", "missing-file", program("opens"), "data/train.csv"),
    Failure("file-of-cat", "missing-file", "set -e\ncat inputs/mesh.dat", "inputs/mesh.dat"),
    Failure("shadow", "permission", program("reads_what_it_may_not"), "/etc/shadow"),
    Failure("not-executable", "permission", "./notes.txt", "Permission denied"),
    Failure("full", "disk-full", program("fills"), "No space left on device"),
    Failure("syntax", "script-error", "for i in 1 2; do\n  echo $i\nfi", "syntax error"),
    Failure("option", "script-error", program("takes_options", "--epoch-count 3"), "unrecognized arguments"),
    Failure("option-of-sort", "script-error", "set -e\nsort --paralel=2 notes.txt", "unrecognized option"),
    Failure("unset", "script-error", "set -u\necho $DATA_ROOT/run", "DATA_ROOT"),
    Failure("command", "command-not-found", "solve_of_nowhere --mesh fine", "solve_of_nowhere"),
    Failure("library", "shared-library", "./solver", "error while loading shared libraries"),
    Failure("library-of-python", "shared-library", program("loads_a_library"), "libsolver_of_nowhere.so.3"),
    Failure("port", "port-in-use", program("listens_twice"), "Address already in use"),
    Failure("null", "segmentation-fault", program("reads_null")),
    Failure("null-in-a-step", "segmentation-fault", f"srun {program('reads_null')}"),
    Failure("mapped", "bus-error", program("maps_a_short_file")),
    Failure("diverged", "numeric", program("diverges"), "loss is nan"),
    Failure("download", "network", program("downloads"), "Name or service not known"),
    Failure("clone", "network", "git clone -q https://code.nowhere.invalid/lib lib", "nowhere.invalid"),
    Failure("exception", "python-exception", program("raises"), "range() arg 3 must not be zero"),
    Failure("one-rank", "python-exception", f"srun -n3 -K1 {program('ranks')}", "KeyError", ("-n3", "--mem=600")),
    Failure("licence", "license", "set -e\nsbatch -L matlab:1 -o/dev/null --wrap=true", "Invalid license"),
    Failure("silent", "unknown", "exit 3"),
    Failure("well", "none", program("catches")),
    Failure("dependent", "dependency", "true", ends=False, after="silent"),
    Failure("wall", "limit", "true", options=("--qos=short", "--time=10"), ends=False),
]  # fmt: skip
