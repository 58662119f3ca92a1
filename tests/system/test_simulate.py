"""The command `simulate` on the accounting of a real Slurm: every job that sacct knows of is played or counted."""

from __future__ import annotations

import json
import sys
import time

import pytest
from tests.system.faces import Place

SCRIPT = (
    "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --time=2\n#SBATCH --mem=50M\n#SBATCH --output=/dev/null\nsleep 2\n"
)
TURNS = 4


@pytest.fixture
def ran(fresh: Place) -> Place:
    """Jobs that take a whole partition in turn, an array, and one that is not over."""
    (fresh.project / "turn.sh").write_text(SCRIPT)
    fresh.own()
    nodes = fresh.slurm("sinfo", "-h", "-p", "cpu", "-o", "%D").strip()
    numbers = [
        fresh.slurm("sbatch", "--parsable", "--exclusive", f"--nodes={nodes}", "turn.sh").strip() for _ in range(TURNS)
    ]
    numbers.append(fresh.slurm("sbatch", "--parsable", "--array=1-3", "turn.sh").strip())
    fresh.slurm("sbatch", "--parsable", "--begin=now+1hour", "turn.sh")
    for _ in range(240):
        states = fresh.slurm("sacct", "-n", "-X", "-P", "-o", "State", f"--jobs={','.join(numbers)}").split()
        if len(states) == TURNS + 3 and set(states) == {"COMPLETED"}:
            return fresh
        time.sleep(0.5)
    raise AssertionError(f"the jobs did not end: {states}")


@pytest.mark.system
@pytest.mark.proves("simulate-accounting")
def test_every_job_that_the_accounting_shows_is_played_or_counted_as_left_out(ran: Place):
    words = ["--accounting", "--days=1", "--strategies=easy,easy-exact,site", "--json"]
    done = ran.run([sys.executable, "-m", "slurm_agent_tools", "simulate", *words])
    assert done.returncode == 0, done.stdout
    body = json.loads(done.stdout)
    rows = ran.slurm("sacct", "-a", "-n", "-X", "-P", "-o", "JobID", "-S", "now-24hours", "-E", "now").split()
    whole = [row for row in rows if "[" not in row]
    assert body["jobs"] + sum(body["left_out"].values()) == len(whole)
    assert body["jobs"] >= TURNS + 3
    assert body["users"] in {"own", "all"}
    assert body["recorded_mean_wait_seconds"] > 0
    assert [one["name"] for one in body["strategies"]] == ["easy", "easy-exact", "site"]
    cpus = sum(int(line) for line in ran.slurm("sinfo", "-h", "-N", "-o", "%N %c").split()[1::2])
    assert 0 < body["processors"] <= cpus
