"""What one accepted submission costs: Slurm's commands and our own functions, over the fake Slurm."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

import pytest
from benchmarks.timing import environment
from tests.unit.services import contexts as registry
from tests.unit.services.fakes import fake_toolbox
from tests.unit.services.submitting_process import SCRIPT
from tests.watchdog import SECONDS

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.models.arguments import GetStatus, SubmitJob
from slurm_agent_tools.models.submission_answer import SubmitReply
from slurm_agent_tools.services import dispatch, submission_facts, submit

COMMANDS = 8
FUNCTIONS = 350
MODULES = 70
"""Of ours loaded by a process that submits: files with a line of code. `PACKAGES` hold nothing but their docstring."""
PACKAGES = {
    f"slurm_agent_tools.{name}" for name in (
        "api", "models", "policy", "policy.rules", "programs", "programs.languages", "scripts", "services", "slurm", "slurm.commands", "store", "text", "transport",
    )
}  # fmt: skip
RUNNING = 70
"""Of ours in which a function ran."""
LOADED = (submission_facts, dispatch, submit)
"""Imported here, so that what runs only while modules are loaded is not counted."""
ROOT = Path(__file__).parents[3]
UNUSED = {
    f"slurm_agent_tools.{name}" for name in (
        "diagnosis", "insights", "transport.ssh", "scripts.programs.python_program", "services.approval", "services.handover",
        "services.drift", "services.jobs", "services.recovery", "services.present", "slurm.commands.sacct", "slurm.commands.scontrol_nodes", "slurm.merge", "slurm.occasional_questions", "slurm.commands.sdiag", "scripts.kept_nodes", "scripts.programs.shell_loops",
        "scripts.workflow_files",
        "models.report", "models.status_answer", "policy.site_rules", "policy.rules.unreadable_options", "policy.rules.script_mending",
        "policy.rules.command_mending", "policy.rules.device_mending",
    )
}  # fmt: skip
_PLAIN = 1  # CO_OPTIMIZED: a function, not the body of a class or a module


class Counter:
    """Distinct functions of ours that ran while it was on, in all threads that were started under it."""

    def __init__(self) -> None:
        self.on, self.seen = False, set[CodeType]()

    def note(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if self.on and event == "call" and code.co_flags & _PLAIN and not code.co_name.startswith("<"):
            ours = "/slurm_agent_tools/" in code.co_filename and "/devcluster/fake/" not in code.co_filename
            self.seen |= {code} if ours else set()

    @contextmanager
    def counting(self) -> Iterator[None]:
        self.on = True
        try:
            yield
        finally:
            self.on = False


@pytest.fixture
def counter() -> Iterator[Counter]:
    made, before = Counter(), sys.getprofile()
    threading.setprofile(made.note)
    sys.setprofile(made.note)
    yield made
    sys.setprofile(before)
    threading.setprofile(None)


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def tools(tmp_path: Path, slurm: FakeSlurm) -> Iterator[registry.TestedToolbox]:
    made = fake_toolbox(tmp_path, slurm)
    Path(made.context.project, "job.sh").write_text(SCRIPT)
    yield made
    made.context.store.close()


async def submitted(tools: registry.TestedToolbox, **asked: str) -> SubmitReply:
    reply = await tools.call("submit_job", SubmitJob(script="job.sh", **asked))  # type: ignore[arg-type]
    assert isinstance(reply, SubmitReply)
    assert reply.status == "submitted", reply
    return reply


async def test_an_accepted_submission_asks_slurm_eight_things_at_most(tools: registry.TestedToolbox, slurm: FakeSlurm):
    await tools.call("get_status", GetStatus())
    slurm.asked.clear()

    reply = await submitted(tools)

    assert commands(slurm) == [*SENDING, f"scontrol release {reply.job_id}"]
    assert len(commands(slurm)) <= COMMANDS
    assert "--test-only" in slurm.asked[1]
    assert "--hold" in slurm.asked[2]
    assert slurm.job(int(reply.job_id or 0)).request.script == SCRIPT.encode()


SENDING = [
    "squeue", "sbatch", "sbatch", "scontrol show job", "scontrol write batch_script", "squeue",
]  # fmt: skip
"""Up to the release."""


def commands(slurm: FakeSlurm) -> list[str]:
    """What was asked, in brief."""
    return [" ".join(word for word in argv[:3] if not word.startswith("-")) for argv in slurm.asked]


@pytest.mark.parametrize("process", ["the same", "another"])
async def test_partitions_that_grew_old_cost_one_command_here_and_in_the_next_process(
    tools: registry.TestedToolbox, slurm: FakeSlurm, tmp_path: Path, process: str
):
    await tools.call("get_status", GetStatus())
    if process == "another":
        tools = fake_toolbox(tmp_path, slurm)
    else:
        tools.context.slurm._partitions.changed()
    slurm.asked.clear()

    reply = await submitted(tools)

    asked = [*SENDING, f"scontrol release {reply.job_id}", "scontrol show partition"]
    assert sorted(commands(slurm)) == sorted(asked)
    assert len(commands(slurm)) <= COMMANDS


async def test_a_repeated_key_is_answered_from_the_facts_and_is_the_same_but_for_its_summary(
    tools: registry.TestedToolbox, slurm: FakeSlurm
):
    await tools.call("get_status", GetStatus())
    first = await submitted(tools, idempotency_key="k", run_id="run-7")
    sent = [argv for argv in slurm.asked if argv[0] == "sbatch"]

    again = await submitted(tools, idempotency_key="k", run_id="run-7")

    assert again.model_copy(update={"summary": first.summary}) == first
    assert (first.granted, first.log_paths, first.run_id) != (None, None, None)
    assert [argv for argv in slurm.asked if argv[0] == "sbatch"] == sent


async def test_an_accepted_submission_runs_a_bounded_number_of_our_functions(
    counter: Counter, tools: registry.TestedToolbox
):
    await tools.call("get_status", GetStatus())

    with counter.counting():
        await submitted(tools)

    assert 100 < len(counter.seen) <= FUNCTIONS
    assert len({code.co_filename for code in counter.seen}) <= RUNNING


def test_a_process_that_submits_loads_a_bounded_number_of_our_modules(tmp_path: Path):
    process(tmp_path, "look")

    loaded = process(tmp_path)

    assert "slurm_agent_tools.services.submit" in loaded
    assert loaded & UNUSED == set()
    assert {name for name in loaded if not has_code(name)} == PACKAGES
    assert len(loaded - PACKAGES) <= MODULES


def process(folder: Path, *words: str) -> set[str]:
    """The modules of ours that a process over this folder loaded."""
    asked = [sys.executable, "-m", "tests.unit.services.submitting_process", str(folder), *words]
    env = environment(folder, PYTHONPATH=str(ROOT))
    done = subprocess.run(asked, cwd=ROOT, env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-500:]
    return set(json.loads(done.stdout))


def has_code(module: str) -> bool:
    """Whether there is more in the file of a module than its docstring."""
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    body = ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body
    return any(not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)) for one in body)


async def test_a_job_that_takes_whole_nodes_is_counted_by_what_they_have_now(
    tools: registry.TestedToolbox, slurm: FakeSlurm
):
    """Slurm does not show the GPUs of such a job while it waits, so nothing that was kept may count them."""
    whole_nodes(Path(tools.context.project, "job.sh"))
    await tools.call("get_status", GetStatus())
    slurm.clock.move(60)
    slurm.asked.clear()

    await tools.call("submit_job", SubmitJob(script="job.sh"))

    assert "scontrol show nodes" in commands(slurm)


def whole_nodes(script: Path) -> None:
    script.write_text(SCRIPT.replace("#SBATCH --mem", "#SBATCH --exclusive\n#SBATCH --mem", 1))
