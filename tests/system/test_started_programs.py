"""Every program that a session starts, by the system's own calls: the system's and the package's, and no other.

The project is a hostile one: it has a program for each name that is looked for, on the user's PATH before all others,
modules that are named as Python's and ours, and a repository whose settings name a program wherever git takes one.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest
from mcp import StdioServerParameters
from tests.system.faces import Place
from tests.system.faces import call as called

from slurm_agent_tools.api.catalogue import TOOLS

COMMAND = str(Path(sys.executable).parent / "slurm-agent-tools")
SLURM = {"sacct", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "squeue", "sstat"}
# What is started beside Slurm's commands, and by whom.
OTHERS = {
    "git": "save_result compares the work tree", "shfmt": "scripts are parsed", "df": "get_status tells of the disk",
    "date": "doctor compares the clocks", "sh": "a large log is searched, and git is bounded", **dict.fromkeys(("grep", "awk", "tr", "dd", "head"), "by that sh"),
}  # fmt: skip
CALL = re.compile(r'^\d+ +execve(?:at)?\((?:[A-Z_]+|\d+(?:<[^>]*>)?, )?"((?:[^"\\]|\\.)*)", \[(.*)$')
TRAPS = sorted(
    SLURM
    | set(OTHERS)
    | {
        "python3",
        "python",
        "ssh-keygen",
        "bash",
        "ls",
        "nvidia-smi",
        "git-lfs",
        "gawk",
        "mawk",
        "uname",
        "file",
        "hostname",
    }
)


@dataclass
class Traced(Place):
    """A place where everything that is started as the user is written down, with all that it starts."""

    @property
    def record(self) -> Path:
        return self.project.parent / "trace"

    def as_user(self, argv: list[str]) -> list[str]:
        watch = [
            "/usr/bin/strace",
            "-f",
            "-qq",
            "--seccomp-bpf",
            "-A",
            "-s",
            "300",
            "-e",
            "trace=execve,execveat",
            "-e",
            "signal=none",
        ]
        return self.cluster.as_user([*watch, "-o", str(self.record), *argv])

    def server(self) -> StdioServerParameters:
        """By our command, as the client files start it: `python -m` looks into the working folder first."""
        argv = self.as_user([COMMAND, "serve"])
        return StdioServerParameters(command=argv[0], args=argv[1:], env=self.environment(), cwd=str(self.project))

    def started(self) -> list[tuple[str, str]]:
        """Each program by the path that was given to the system, found or not, and its words."""
        lines = self.record.read_text(errors="replace").splitlines()
        calls = [CALL.match(line) for line in lines if "execve" in line and "resumed" not in line]
        assert None not in calls, lines
        return [(call[1], call[2]) for call in calls if call is not None]


def program(path: Path, marker: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$0 $*" >> {marker}\n')
    path.chmod(0o755)


def git(folder: Path, *words: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@b.example", "-c", "safe.directory=*"]
    subprocess.run(["git", *who, "-C", str(folder), *words], check=True, capture_output=True)


NAPS = """campaign: 1
objective: {wall_clock: a nap}
stages:
  - name: nap
    kind: cpu
    command: [sleep, "20"]
    resources: {cpus: 1, memory: 100M, time_limit: 5min, partition: cpu}
rounds:
  - {kind: smoke}
limits: {cpu_hours: 1, trials: 2}
"""


@pytest.fixture
def hostile(fresh: Place) -> tuple[Traced, Path]:
    """The place, and the file that any program of the project writes when it is run."""
    project, marker = fresh.project, fresh.project.parent / "was-run"
    for name in TRAPS:
        program(project / "bin" / name, marker)
        program(project / name, marker)
    for name in ("json", "anyio", "pydantic", "yaml", "slurm_agent_tools", "sitecustomize", "usercustomize", "typing"):
        (project / f"{name}.py").write_text(f"open({str(marker)!r}, 'a').write(__name__)\n")
    (project / "train.sh").write_text(
        "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --output=logs/slurm/%x-%j.out\n"
        "seq 1 600000; echo 'ValueError: no such value'; exit 3\n"
    )
    (project / "long.sh").write_text(
        "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --output=logs/slurm/%x-%j.out\nsleep 300\n"
    )
    (project / "configs").mkdir(exist_ok=True)
    (project / "configs/train.json").write_text('{"lr": 0.1}')
    (project / "configs/schema.json").write_text('{"type": "object"}')
    (project / "campaigns").mkdir()
    (project / "campaigns/naps.yaml").write_text(NAPS)
    repository(project, f"{project}/bin/git-lfs")
    path = os.pathsep.join(["", ".", str(project / "bin"), str(project), os.environ["PATH"]])
    fresh.own()
    marker.unlink(missing_ok=True)  # git ran what the repository names, while it was made
    return Traced(fresh.cluster, project, {"PATH": path, "PYTHONPATH": ""}), marker


def repository(project: Path, run: str) -> None:
    (project / "model.bin").write_text("weights\n")
    git(project, "init", "-q")
    git(project, "add", "model.bin", "train.sh")
    git(project, "commit", "-q", "-m", "first")
    (project / ".gitattributes").write_text("* filter=evil diff=evil\n")
    for name in ("filter.evil.clean", "filter.evil.process", "diff.evil.textconv", "diff.external", "core.pager",
                 "core.sshCommand", "core.editor", "core.askPass", "gpg.program", "credential.helper", "lfs.extension.x.clean",
                 "core.fsmonitor"):  # fmt: skip
        git(project, "config", name, run)
    git(project, "config", "core.hooksPath", f"{project}/bin")
    (project / "model.bin").write_text("WEIGHTS\n")


def judged(place: Traced, marker: Path) -> set[str]:
    """The names of all programs that were started; every one of the system, of Python or of the package."""
    base = {str(Path(sys.executable).resolve()), sys.executable, str(Path(sys.executable).parent / "python3")}
    ours = {str(Path(sysconfig.get_path("scripts")) / name) for name in ("shfmt", "slurm-agent-tools")} | base
    system = tuple(
        f"{folder}/" for folder in ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/lib/git-core", place.programs)
    )
    names = set()
    for path, words in place.started():
        assert path in ours or path.startswith(system), (path, words)
        names.add(Path(path).name if path not in base else "python")
    assert not marker.exists(), marker.read_text()
    return names


@pytest.mark.proves("only-known-programs-start")
async def test_a_session_of_all_tools_starts_programs_of_the_system_and_of_the_package_alone(hostile):
    place, marker = hostile
    async with place.client() as client:

        async def call(tool: str, **arguments: object) -> dict[str, object]:
            done.add(tool)
            return await called(client, tool, **arguments)

        done: set[str] = set()
        sections = ["jobs", "gpu", "queue", "partitions", "nodes", "results", "errors", "disk", "policy"]
        await call("get_status", sections=sections, detailed=True, refresh=True)
        assert (await call("validate_config", config_path="configs/train.json"))["status"] == "valid"
        await call("validate_config", config_path="train.sh")
        await call("generate_script", name="made", command="python train.py", partition="cpu", gpus=0)
        failed = await call("submit_job", script="train.sh")
        running = await call("submit_job", script="long.sh")
        assert [failed["status"], running["status"]] == ["submitted", "submitted"], (failed, running)
        ended = await call("wait_for_job", job_id=failed["job_id"], timeout_seconds=60)
        assert ended["job"]["state"] == "FAILED"
        assert (await call("analyze_log", job_id=failed["job_id"], mode="full"))["status"] == "ok"
        await call("wait_for_job", job_id=running["job_id"], timeout_seconds=5)
        await call("analyze_log", recent_errors=3)
        await call("sync_files", direction="status")  # of a cluster on this machine there is nothing to compare
        assert (await call("choose_backend", script="train.sh", expected="2h"))["status"] == "chosen"
        asked = [{"name": "a", "script": "train.sh", "expected": "2h"}]
        assert (await call("plan_jobs", jobs=asked))["status"] == "planned"
        assert (await call("get_fleet", match={"gpus": 1}))["status"] == "ok"
        assert (await call("get_campaign", name="naps", view="plan"))["status"] == "planned"
        assert (await call("advance_campaign", name="naps", timeout_seconds=0))["submitted"]
        cancelled = await call("cancel_job", job_id=running["job_id"], reason="enough")
        assert cancelled["status"] == "cancelled", cancelled
        saved = [
            await call("save_result", name="a", status="failed", job_id=failed["job_id"], metrics={"loss": loss})
            for loss in (1, 2)
        ]
        assert {one["status"] for one in saved} == {"saved"}, saved
        assert saved[0]["result"]["environment"]["git"]["commit"]
        await call("compare_results", baseline=saved[0]["file_path"], target=saved[1]["file_path"])
        for resource in (await client.list_resources()).resources:
            await client.read_resource(resource.uri)
    names = judged(place, marker)

    assert done == {tool.name for tool in TOOLS}
    assert names - {"python", "slurm-agent-tools"} <= SLURM | set(OTHERS), names
    assert {
        "python",
        "git",
        "shfmt",
        "df",
        "sh",
        "grep",
        "sbatch",
        "squeue",
        "scontrol",
        "sacct",
        "scancel",
    } <= names, names


CLI = (
    ("get_status", "--detailed"), ("validate_config", "train.sh"), ("validate_config", "configs/train.json"),
    ("generate_script", "--name=made", "--command=true", "--gpus=0", "--partition=cpu"), ("submit_job", "train.sh", "--dry-run"),
    ("analyze_log", "--recent-errors=3"), ("save_result", "a", "--status=success"), ("wait_for_job", "1", "--timeout-seconds=0"),
    ("cancel_job", "999999", "--reason=x"), ("compare_results", "a", "a"), ("choose_backend", "train.sh", "--expected=2h"),
    ("sync_files", "status"), ("get_campaign", "naps", "--view=plan"), ("advance_campaign", "naps", "--timeout-seconds=0"),
    ("plan_jobs", '--jobs=[{"name": "a", "script": "train.sh", "expected": "2h"}]'), ("get_fleet",),
)  # fmt: skip
COMMANDS = (
    ("policy", "check", "--json", "train.sh"), ("policy", "show"), ("policy", "log", "--json"), ("doctor",), ("history",),
    ("report", "1"), ("approve", "none"), ("init",), ("backends", "list"), ("backends", "check"),
    ("fleet",), ("campaign", "status", "naps"), ("campaign", "report", "naps"), ("campaign", "stop", "naps"),
)  # fmt: skip


@pytest.mark.proves("only-known-programs-start")
def test_the_command_line_starts_programs_of_the_system_and_of_the_package_alone(hostile):
    place, marker = hostile
    for tool, *words in CLI:
        done = place.run([COMMAND, tool, *words, "--json"])
        assert json.loads(done.stdout), (tool, done.stderr)
    for words in COMMANDS:
        done = place.run([COMMAND, *words])
        assert done.returncode in {0, 1, 2, 3}, (words, done.stderr)
    names = judged(place, marker)

    assert {tool for tool, *_ in CLI} == {tool.name for tool in TOOLS}
    assert names - {"python", "slurm-agent-tools"} <= SLURM | set(OTHERS), names
