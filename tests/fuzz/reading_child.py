"""The readers of files that others write, in a process whose time and memory are seen from outside.

    python -m tests.fuzz.reading_child KIND      asks on standard input, answers on standard output

A question is a line with the number of bytes, and the bytes; the answer a line of JSON with what came of it, the
processor seconds that it took, and the most memory that the process has had, and shfmt where it was started.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio

from slurm_agent_tools import settings
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.decision import decision_shown
from slurm_agent_tools.policy import policy_files
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.scripts.configs.checks import config_checks
from slurm_agent_tools.scripts.configs.experiment_config import input_paths, parse_config
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.transport.local import LocalFiles

LOADED = load(shipped())
TASKS = {
    b"npm": "package.json", b"pixi": "pixi.toml", b"task": "Taskfile.yml", b"dvc": "dvc.yaml", b"just": "justfile",
    b"snakemake": "Snakefile", b"make": "Makefile", b"inv": "tasks.py", b"nextflow": "main.nf",
}  # fmt: skip


def read_settings(project: Path, data: bytes) -> None:
    """The project's file, or the user's where the first byte says so."""
    path = project / "slurm-agent.toml"
    path.write_bytes(data)
    settings.load(project)


def read_policy(project: Path, data: bytes) -> None:
    """A layer of the project."""
    (project / "policies").mkdir(exist_ok=True)
    (project / "policies" / "a.yaml").write_bytes(data)
    policy_files.load_for(project, None)


def read_config(project: Path, data: bytes) -> None:
    """A configuration of an experiment; its suffix is in front."""
    suffix, _, text = data.partition(b"\0")
    config = parse_config(text, suffix.decode(), "configs/a")
    present = dict.fromkeys(input_paths(config), False)
    config_checks.check_config(config, present, shaped=False)
    section = config_checks.slurm_section(config)
    if section is not None:
        config_checks.slurm_script(section)


def read_job(project: Path, data: bytes) -> None:
    """A batch script and one file that it runs, with the decision on it; the program is in front."""
    program, _, text = data.partition(b"\0")
    script = text
    if program in TASKS:
        (project / TASKS[program]).write_bytes(text)
        script = b"#!/bin/bash\n" + program + b" run main.nf\n" + program + b" all\n"
    reading = anyio.run(lambda: read_script(script, "job.sh", project=str(project), files=LocalFiles()))
    decision_shown(evaluate(reading, EvaluationContext(LOADED, str(project)))).model_dump_json()


READERS: Mapping[str, Callable[[Path, bytes], None]] = {
    "settings": read_settings, "policy": read_policy, "configs": read_config, "scripts": read_job,
}  # fmt: skip


def outcome(kind: str, project: Path, data: bytes) -> str:
    """`read`, or `refused`: an error that names what the caller can mend. Anything else is raised."""
    try:
        READERS[kind](project, data)
    except InputError as error:
        if len(error.message) + len(error.hint) > 4000:
            raise AssertionError(f"{len(error.message)} characters are said") from error
        return "refused"
    return "read"


def main() -> None:
    """Answer until standard input ends."""
    kind = sys.argv[1]
    for name in [name for name in os.environ if name.startswith("SLURM_AGENT_")]:
        del os.environ[name]
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        project = Path(folder, "project").resolve()
        project.mkdir()
        while line := sys.stdin.buffer.readline():
            data = sys.stdin.buffer.read(int(line))
            start = time.process_time()
            try:
                told = outcome(kind, project, data)
            except Exception as error:  # noqa: BLE001 - every crash is told
                told = f"{type(error).__name__}: {error}"[:500]
            seconds = time.process_time() - start
            ours, parser = (
                resource.getrusage(who).ru_maxrss * 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
            )
            answer = {"told": told, "seconds": seconds, "bytes": ours, "parser_bytes": parser}
            print(json.dumps(answer), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
