"""campaign run --all on a real Slurm: three campaigns share four slots as their files say, and Ctrl-C leaves in order."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter

import pytest
from tests.system.campaign_files import laboratory, squeue_watched
from tests.system.faces import Place

SOAK = os.environ.get("SOAK") == "1"
SECONDS, RUN = (600, 20) if SOAK else (60, 4)
SHARES = {"large": 0.6, "middle": 0.3, "small": 0.1}

PROGRAM = f"""import time
time.sleep({RUN})
print("val_loss=0.5")
"""

FILE = """campaign: 1
share: {share}
objective: {{metric: val_loss, direction: minimize}}
stages:
  - name: training
    kind: gpu
    command: [python3, wait.py]
    parameters:
      lr: {{default: 0.1, argument: --lr}}
    resources: {{cpus: 1, memory: 100M, gpus: 1, time_limit: 2min}}
    metrics: {{pattern: {{val_loss: 'val_loss=([0-9.]+)'}}}}
rounds:
  - kind: list
    hypothesis: One of them is better.
    trials: [{trials}]
limits: {{gpu_hours: 20, cpu_hours: 20, trials: 200, at_once: 4}}
"""


def used(place: Place) -> tuple[Counter[str], float]:
    """Seconds that each campaign's runs had their GPU, as the accounting tells it, and how far a part may be from its share.

    That is 5 points in ten minutes. In one minute there are so few runs that two of them, which are not over or were the
    first of their campaign, may be more than that.
    """
    rows = place.slurm("sacct", "-X", "-n", "-P", "-S", "now-1hour", "-o", "JobName,ElapsedRaw,Partition,State")
    seconds: Counter[str] = Counter()
    longest = 0
    ours = [row.split("|") for row in rows.splitlines() if row.count("|") == 3]  # other tests give jobs odd names
    for name, elapsed, partition, state in ours:
        if name.split("-")[0] not in SHARES:  # of other tests on this cluster
            continue
        assert partition == "gpu", (name, partition)  # the smaller GPUs, by themselves
        assert state in {"COMPLETED", "RUNNING", "PENDING", "COMPLETING"}, (name, state)
        seconds[name.split("-")[0]] += int(elapsed)
        longest = max(longest, int(elapsed))
    return seconds, 0.05 if SOAK else max(0.05, 2 * longest / seconds.total())


@pytest.mark.proves("campaigns-share-the-slots", "campaign-stays-below-the-cap")
def test_three_campaigns_of_60_30_and_10_percent_and_ctrl_c(fresh: Place):
    trials = ", ".join(f"{{lr: {number / 1000}}}" for number in range(1, 150))
    for name, share in SHARES.items():
        laboratory(fresh, name, FILE.format(share=share, trials=trials), {"wait.py": PROGRAM})
    argv = fresh.as_user([sys.executable, "-m", "slurm_agent_tools", "campaign", "run", "--all", "--full", "--json"])
    with squeue_watched(fresh) as active:
        running = subprocess.Popen(
            argv, cwd=fresh.project, env=fresh.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            start_new_session=True,
        )  # fmt: skip
        try:
            running.wait(SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGINT)
        out, errors = running.communicate(timeout=90)
    assert running.returncode == 4, (out, errors)
    assert b"Left. The jobs go on" in errors
    reply = json.loads(out)
    assert 0 < max(active) <= 4
    assert reply["ticks_with_room"] == 0, reply
    assert reply["ticks"] > SECONDS / 20

    left = json.loads(fresh.run(["squeue", "--json"]).stdout)["jobs"]
    assert all(job["hold"] is False for job in left if job["job_state"] == ["PENDING"])  # nothing is left half sent
    had, apart = used(fresh)
    told = {one["name"]: one for one in reply["campaigns"]}
    for name, share in SHARES.items():
        assert abs(had[name] / had.total() - share) <= apart, had
        assert abs(told[name]["part"] - share) <= apart, reply
        assert told[name]["share"] == share
