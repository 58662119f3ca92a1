"""The demo, played by an MCP client against our server over a fake Slurm: every check of it agrees."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import demo_command, demo_project
from slurm_agent_tools.cli.commands.demo_command import DemoOutput
from slurm_agent_tools.cli.commands.demo_project import DemoProject, make, write_files
from slurm_agent_tools.devcluster import definition, lifecycle
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError
from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.devcluster.fake.fake_job import FakeJob
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.server.mcp_server import build_server

pytestmark = pytest.mark.proves("demo-checks-itself")


@dataclass(frozen=True, slots=True)
class Stage(DemoProject):
    """The demo's project on the fake Slurm, whose commands are asked directly."""

    slurm: FakeSlurm

    async def command(self, *argv: str) -> str:
        if argv[:2] == ("sinfo", "-h"):
            return "\n".join(self.slurm.controller.partitions)
        answer = self.slurm.command(*argv)
        assert answer.code == 0, answer.err
        return answer.out.strip()

    async def succeeds(self, *argv: str) -> bool:
        words = [str(self.project / word) if word.endswith(".sh") else word for word in argv]
        return self.slurm.command(*words).code == 0

    async def tool(self, *words: str) -> str:
        return f"{words[0]} of {words[1]}"


def ends(job: FakeJob) -> Ending:
    """What the demo's programs do: one trains, the other loads 320 MB."""
    if b"load.py" not in job.request.script:
        return Ending(12, output="".join(f"epoch {one}/4 loss={0.9 / one:.4f}\n" for one in range(1, 5)))
    whole = (job.request.memory_per_node or 0) > 320
    return (
        Ending(8, output="went through 320M\n", memory=2**28)
        if whole
        else Ending(3, fate="out_of_memory", memory=2**28)
    )


@pytest.fixture
def stage(tmp_path: Path, monkeypatch) -> Stage:
    slurm = FakeSlurm()
    slurm.on_start(ends)
    project = (tmp_path / "project").resolve()
    project.mkdir()
    write_files(project)
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(project))
    assert main.main(["init", str(project)]) == 0
    return Stage(Cluster(tmp_path, 20000, slurm.user), project, slurm)


async def play(stage: Stage, tmp_path: Path) -> DemoOutput:
    box, paper = fake_toolbox(tmp_path, stage.slurm), DemoOutput()
    try:
        await demo_command.perform(build_server(box, box.context.settings), stage, paper)
    finally:
        box.context.store.close()
    return paper


async def test_every_check_of_the_demo_agrees_with_slurm(stage: Stage, tmp_path: Path, capsys):
    paper = await play(stage, tmp_path)
    assert paper.differences == []
    assert paper.checks >= 15
    assert paper.end() == 0
    jobs = [stage.slurm.job(int(number)) for number in await stage.jobs()]  # what was refused or waits was never sent
    single = [(job.request.name, job.state) for job in jobs if job.request.name in {"baseline", "too-big"}]
    assert single == [("baseline", "COMPLETED"), ("too-big", "OUT_OF_MEMORY"), ("too-big", "COMPLETED")]
    campaign = [job.state for job in jobs if job.request.name not in {"baseline", "too-big"}]
    assert campaign == ["COMPLETED"] * 9  # a smoke run, and four rates with two batch sizes
    shown = capsys.readouterr().out
    assert "A script that needs a person" in shown
    assert f"report of {jobs[1].number}" in shown


async def test_a_slurm_that_says_otherwise_is_a_difference(stage: Stage, tmp_path: Path, monkeypatch):
    fate = Stage.fate

    async def other(self: Stage, job_id: str) -> tuple[str, str]:
        state, code = await fate(self, job_id)
        return ("FAILED", "1:0") if self.slurm.job(int(job_id)).request.name == "baseline" else (state, code)

    monkeypatch.setattr(Stage, "fate", other)
    paper = await play(stage, tmp_path)
    assert paper.differences == ["sacct: how it ended: we say COMPLETED, 0:0, it is FAILED, 1:0"]
    assert paper.end() == 1


async def test_a_tool_that_fails_ends_the_demo_with_its_words(stage: Stage, tmp_path: Path):
    (stage.project / "train.yaml").unlink()
    with pytest.raises(AgentToolsError, match=r"validate_config failed: .*train\.yaml"):
        await play(stage, tmp_path)


# --- its project, with real processes ----------------------------------------------------------------------------


@pytest.fixture
def ground(tmp_path: Path) -> Cluster:
    """A cluster of this user, whose programs are stand-ins."""
    (tmp_path / "bin").mkdir()
    for name, body in {
        "sacct": "echo '9|COMPLETED|0:0'",
        "squeue": "printf '9\\n10\\n'",
        "broken": "echo no >&2; exit 3",
    }.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    made = Cluster(tmp_path, 20000, definition.me(), tmp_path / "bin")
    made.project.mkdir(parents=True)
    return made


async def test_a_new_project_holds_the_demos_scripts_and_is_set_up(ground: Cluster):
    stage = await make(ground)
    names = {path.name for path in stage.project.iterdir()}
    assert {"train.sh", "big.sh", "fixed.sh", "wide.sh", "train.yaml", "train.py", "policies"} <= names
    assert stage.project.parent == ground.project.parent
    shutil.rmtree(stage.project)


async def test_commands_run_as_the_user_in_the_project_with_the_clusters_slurm_first(ground: Cluster):
    stage = DemoProject(ground, ground.project)
    assert await stage.command("pwd") == str(ground.project)
    assert (await stage.command("printenv", "SLURM_CONF", "HOME")).split() == [
        str(ground.conf),
        str(ground.project.parent),
    ]
    assert await stage.fate("9") == ("COMPLETED", "0:0")
    assert await stage.succeeds("true")
    assert not await stage.succeeds("broken")
    with pytest.raises(DevclusterError, match=r"broken now failed as \w+: no"):
        await stage.command("broken", "now")


async def test_the_end_of_every_run_is_waited_for_as_the_accounting_lags(ground: Cluster):
    rows = ["9|RUNNING|0:0", "9|COMPLETED|0:0", "9|COMPLETED|0:0\\n10|RUNNING|0:0", "9|COMPLETED|0:0\\n10|FAILED|1:0"]
    answers = "".join(f"{number}) printf '{row}\\n';; " for number, row in enumerate(rows))
    (ground.bin_dir / "sacct").write_text(
        f"#!/bin/sh\nn=$(cat {ground.folder}/asked 2>/dev/null || echo 0)\n"
        f"echo $((n + 1)) >{ground.folder}/asked\ncase $n in {answers}esac\n"
    )
    stage = DemoProject(ground, ground.project)
    assert await stage.ends(["9"], runs=2) == [["9", "COMPLETED", "0:0"], ["10", "FAILED", "1:0"]]
    assert (ground.folder / "asked").read_text() == "4\n"


async def test_an_end_that_is_never_told_is_an_error(ground: Cluster, monkeypatch):
    monkeypatch.setattr(demo_project, "_LOOKS", 2)
    with pytest.raises(DevclusterError, match=r"does not tell the end of 2 runs of job 9: 9\|COMPLETED"):
        await DemoProject(ground, ground.project).ends(["9"], runs=2)


async def test_jobs_of_the_queue_and_of_the_accounting_are_counted_once(ground: Cluster):
    (ground.bin_dir / "sacct").write_text("#!/bin/sh\nprintf '2\\n10\\n'\n")
    assert await DemoProject(ground, ground.project).jobs() == ["2", "9", "10"]


def test_a_client_starts_our_server_in_the_project(ground: Cluster):
    server = DemoProject(ground, ground.project).server()
    assert [server.command, *server.args][-3:] == ["-m", "slurm_agent_tools", "serve"]
    assert str(server.cwd) == str(ground.project)
    assert server.env["SLURM_CONF"] == str(ground.conf)


def test_where_roots_program_cannot_be_read_by_others_the_demo_refuses_before_it_brings_anything_up(
    monkeypatch, capsys
):
    async def up(*_, **__):
        raise AssertionError

    monkeypatch.setattr(lifecycle, "up", up)
    monkeypatch.setattr(lifecycle, "closed_to_demo", lambda: Path("/root/.local"))

    assert main.main(["demo", "--yes"]) == 1
    told = capsys.readouterr().err
    assert "who cannot read /root/.local" in told
    assert "Run `make demo` in a clone that every user can read" in told
