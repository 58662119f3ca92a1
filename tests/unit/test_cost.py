"""What a start and a check cost, counted in calls, modules and bytes; their times are measured by `make bench`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks import cli, start
from benchmarks.check_script import check, everyday, plain
from benchmarks.timing import environment
from tests.effort import some
from tests.unit.counting import counted
from tests.unit.slow import SLOW
from tests.watchdog import SECONDS

from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.programs.program import Effort, cost

ROOT = Path(__file__).parents[2]
LOADED = load(shipped())
HEAVY = {
    "asyncssh", "mcp", "rich", "structlog", "tomllib", "slurm_agent_tools.scripts.reader",
    "slurm_agent_tools.policy.evaluate", "slurm_agent_tools.diagnosis.classify", "slurm_agent_tools.services.submit",
    "slurm_agent_tools.services.results", "slurm_agent_tools.services.approval", "slurm_agent_tools.services.drift",
    "slurm_agent_tools.models.report", "slurm_agent_tools.models.submission_answer", "slurm_agent_tools.models.diagnosis_answer",
    "slurm_agent_tools.models.accounted",
}  # fmt: skip
STATUS = """
import sys
from slurm_agent_tools.cli import main
code = main.main(["get_status", "--json"])
sys.stderr.write(" ".join(sys.modules))
sys.exit(code)
"""
SERVERS = {
    "ours": "from slurm_agent_tools.cli import main\nrun = lambda: main.main(['serve'])",
    "bare": "from benchmarks.bare_server import server\nrun = server.run",
}
SERVED = "\nimport sys\ntry:\n    run()\nfinally:\n    sys.stderr.write('\\n' + ' '.join(sys.modules))"
MEMORY = 1536 * 2**20  # of addresses, the interpreter and its libraries among them
READS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]), int(sys.argv[1])))
from benchmarks.check_script import check
from slurm_agent_tools.policy.loading import load, shipped
print(check(sys.stdin.buffer.read(), load(shipped()))[1].verdict)
"""
MOST_CALLS = 3_400_000  # of Python's functions for one script: the costliest takes 2.2 million, about a second
HARDLY_ANY = dict.fromkeys(
    ["one endless line", "parentheses", "ifs", "substitutions", "pipes", "ors", "python: parentheses", "doubling texts", "bytes",
     "a bomb"], 35_000,
)  # fmt: skip
"""Of those that the reader soon has done with."""


@pytest.mark.parametrize(
    ("script", "lines", "each"),
    [(everyday, 20, 900), (everyday, 200, 900), (everyday, 2_000, 900), (plain, 200, 500), (plain, 2_000, 500)],
)
def test_the_work_on_a_script_is_in_proportion_to_its_lines(script: Callable[[int], bytes], lines: int, each: int):
    check(everyday(20), LOADED)  # what is loaded and compiled once

    (_, decision), calls = counted(lambda: check(script(lines), LOADED))

    assert decision.verdict == "allow"
    assert calls < 8_000 + each * lines


def test_a_script_of_ten_thousand_lines_is_read_and_a_larger_one_needs_a_person():
    assert cost(everyday(10_000), "shell") < Effort.sized(everyday(10_000)).signs
    decision = check(everyday(20_000), LOADED)[1]

    (said,) = [result for result in decision.rules if result.id == "opaque-code"]
    assert decision.verdict == "approve"
    assert "more words and signs than are read" in said.message + str(said.observed)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("name", some(list(SLOW)))
def test_a_script_made_to_be_slow_gets_an_answer_for_bounded_work(name: str):
    (_, decision), calls = counted(lambda: check(SLOW[name], LOADED), written_in_c=False)

    assert decision.id.startswith("check-")
    assert calls < HARDLY_ANY.get(name, MOST_CALLS)


@pytest.mark.parametrize(
    "name",
    some(["as many commands as are read", "half a megabyte of work", "ten megabytes", "doubling lists", "long values"]),
)
def test_a_script_made_to_be_large_is_answered_in_bounded_memory(name: str):
    done = subprocess.run(
        [sys.executable, "-c", READS, str(MEMORY)], input=SLOW[name], cwd=ROOT, capture_output=True, timeout=SECONDS
    )

    assert done.returncode == 0, done.stderr.decode()[-500:]
    assert done.stdout.decode().strip() in {"allow", "approve", "deny"}


def loaded_by(server: str, folder: Path) -> set[str]:
    """The modules that it has loaded when it answered `initialize` and its client went away."""
    env = environment(folder, PYTHONPATH=str(ROOT))
    asked = json.dumps(start.INITIALIZE).encode() + b"\n"
    done = subprocess.run([sys.executable, "-c", SERVERS[server] + SERVED], input=asked, env=env, cwd=folder,
                          capture_output=True, timeout=SECONDS)  # fmt: skip
    assert b"serverInfo" in done.stdout, done.stderr
    return set(done.stderr.decode().splitlines()[-1].split())


def test_the_server_loads_little_more_than_a_bare_server_of_the_sdk(tmp_path: Path):
    more = loaded_by("ours", tmp_path) - loaded_by("bare", tmp_path)

    ours = {name for name in more if name.startswith("slurm_agent_tools")}
    assert len(ours) < 50
    of_clusters = ("slurm_agent_tools.services", "slurm_agent_tools.slurm", "slurm_agent_tools.store")
    assert not [name for name in ours if name.startswith(of_clusters)], "the first call loads what knows of clusters"
    assert len(more - ours) < 15, sorted(more - ours)


def test_get_status_on_the_command_line_loads_nothing_that_it_does_not_need():
    with cli.idle_cluster() as (folder, env, _):
        done = subprocess.run([sys.executable, "-c", STATUS], cwd=folder, env=env, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-500:]
    loaded = set(done.stderr.split())
    assert HEAVY & loaded == set()
    assert len({name for name in loaded if name.startswith("slurm_agent_tools")}) < 110
