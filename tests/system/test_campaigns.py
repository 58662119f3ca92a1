"""Campaigns on a real Slurm, from the file to the report: over MCP, and on the command line."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from typing import Any

import pytest
from tests.system.campaign_files import HOG, HOG_FILE, RATES, RATES_FILE, TRAIN, laboratory, squeue_watched
from tests.system.faces import Place

KILLS = 60 if os.environ.get("SOAK") == "1" else 4


class Counted:
    """A client whose calls and the bytes of whose answers are counted."""

    def __init__(self, client: Any) -> None:
        self.client, self.calls, self.bytes, self.largest = client, 0, 0, 0

    async def __call__(self, tool: str, **arguments: object) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        assert result.structured_content is not None, result
        size = len(json.dumps(result.structured_content).encode())
        self.calls, self.bytes, self.largest = self.calls + 1, self.bytes + size, max(self.largest, size)
        return dict(result.structured_content)

    async def to_the_end(self, name: str, most: int = 40) -> dict[str, Any]:
        """Advance until nothing is left to do."""
        for _ in range(most):
            reply = await self("advance_campaign", name=name, timeout_seconds=50)
            if reply["status"] not in {"running", "planned"}:
                return reply
        raise AssertionError(reply)


def at_once(place: Place) -> int:
    """The most programs that ran at the same time, as they wrote it down."""
    runs = [json.loads(path.read_text()) for path in (place.project / "runs").glob("r1-*.json")]
    return max(sum(one["begun"] <= other["begun"] < one["ended"] for one in runs) for other in runs)


@pytest.mark.proves("campaign-finds-the-best", "campaign-stays-below-the-cap", "campaign-answers-are-small")
async def test_twelve_rates_and_two_batch_sizes_under_the_cap_of_four(fresh: Place):
    laboratory(fresh, "rates", RATES_FILE, {"train.py": TRAIN})
    async with fresh.client() as client:
        call = Counted(client)
        plan = await call("get_campaign", name="rates", view="plan")
        assert plan["status"] == "planned"
        assert {row[-1] for row in plan["table"][1:]} == {"allow"}
        assert not (fresh.project / "scripts").exists()
        with squeue_watched(fresh) as active:
            reply = await call.to_the_end("rates")
        table = await call("get_campaign", name="rates", view="table")
        report = await call("get_campaign", name="rates", view="report")

    assert reply["status"] == "finished", reply
    (best,) = reply["best"]
    assert best["settings"] == {"lr": 0.03, "batch_size": 32}
    assert reply["counts"] == {"planned": 0, "pending": 0, "running": 0, "done": 2 * len(RATES) + 1, "failed": 0}
    assert table["table"][1][1:3] == [0.03, 32]
    assert 0 < max(active) <= 4
    assert at_once(fresh) <= 4
    assert (fresh.project / report["report_path"]).read_text().startswith("#")
    assert len([*(fresh.project / "results").glob("*_rates-r1-t*.json")]) >= 2 * len(RATES) - 1
    assert call.calls <= 12
    assert call.bytes <= 30_000
    assert call.largest <= 2_000


@pytest.mark.proves("campaign-mends-as-its-file-allows")
async def test_a_stage_that_runs_out_of_memory_is_fixed_once_as_the_file_allows(fresh: Place):
    laboratory(fresh, "memory", HOG_FILE, {"hog.py": HOG})
    async with fresh.client() as client:
        call = Counted(client)
        reply = await call.to_the_end("memory")
        report = await call("get_campaign", name="memory", view="report", detail="full")
    assert reply["status"] == "finished", reply
    assert (reply["counts"]["failed"], reply["counts"]["planned"]) == (1, 0)
    text = (fresh.project / report["report_path"]).read_text()
    assert "megabytes" in text.split("# Failures", 1)[1]
    assert "host-out-of-memory" in text
    assert "host-out-of-memory" in (fresh.project / "documents/lessons.md").read_text()


@pytest.mark.proves("campaign-asks-when-it-fails-alike")
async def test_a_stage_that_fails_twice_alike_stops_and_asks(fresh: Place):
    laboratory(fresh, "broken", HOG_FILE.replace("  - {kind: smoke}\n", ""), {"hog.py": HOG})
    (fresh.project / "ruin").touch()
    fresh.own()
    async with fresh.client() as client:
        call = Counted(client)
        reply = await call.to_the_end("broken")
        assert reply["status"] == "needs_decision", reply
        assert {"stop"} <= set(reply["question"]["choices"])
        again = await call("advance_campaign", name="broken", timeout_seconds=0)
        assert again["status"] == "needs_decision"
        assert "submitted" not in again
        over = await call("advance_campaign", name="broken", decision="stop", timeout_seconds=0)
    assert over["status"] in {"stopped", "finished"}, over


def campaign(place: Place, *words: str, seconds: float = 200) -> subprocess.CompletedProcess[bytes]:
    return place.run([sys.executable, "-m", "slurm_agent_tools", "campaign", *words], seconds=seconds)


@pytest.mark.proves("campaign-finds-the-best", "campaign-stays-below-the-cap")
def test_on_the_command_line_twelve_rates_and_two_batch_sizes_from_the_plan_to_the_report(fresh: Place):
    laboratory(fresh, "rates", RATES_FILE, {"train.py": TRAIN})
    assert campaign(fresh, "plan", "rates", "--json").returncode == 0
    with squeue_watched(fresh) as active:
        done = campaign(fresh, "run", "rates", "--json")
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "finished"), done.stderr
    assert 0 < max(active) <= 4
    assert at_once(fresh) <= 4
    status = json.loads(campaign(fresh, "status", "rates", "--json").stdout)
    assert status["counts"]["done"] == 2 * len(RATES) + 1
    assert status["table"][1][1:3] == [0.03, 32]
    assert campaign(fresh, "report", "rates").returncode == 0
    assert "<svg" in (fresh.project / "campaigns/rates.report.html").read_text()


@pytest.mark.proves("campaign-mends-as-its-file-allows")
def test_on_the_command_line_a_stage_out_of_memory_is_fixed_once_and_the_report_says_so(fresh: Place):
    laboratory(fresh, "memory", HOG_FILE, {"hog.py": HOG})
    done = campaign(fresh, "run", "memory", "--json")
    reply = json.loads(done.stdout)
    assert (done.returncode, reply["status"]) == (0, "finished"), done.stderr
    assert (reply["counts"]["failed"], reply["counts"]["planned"]) == (1, 0)
    assert b"host-out-of-memory" in done.stderr
    text = (fresh.project / reply["report_path"]).read_text().split("# Failures", 1)[1]
    assert "host-out-of-memory" in text
    assert "megabytes" in text
    told = campaign(fresh, "status", "memory")
    assert told.returncode == 0
    assert b"host-out-of-memory" in told.stdout


@pytest.mark.proves("campaign-asks-when-it-fails-alike")
def test_on_the_command_line_a_stage_that_fails_twice_alike_stops_and_asks(fresh: Place):
    laboratory(fresh, "broken", HOG_FILE.replace("  - {kind: smoke}\n", ""), {"hog.py": HOG})
    (fresh.project / "ruin").touch()
    fresh.own()
    asks = campaign(fresh, "run", "broken", "--json")
    reply = json.loads(asks.stdout)
    assert (asks.returncode, reply["status"]) == (3, "needs_decision"), asks.stderr
    sent = fresh.slurm("squeue", "-h", "-t", "all", "-o", "%i").split()
    again = campaign(fresh, "run", "broken")
    assert again.returncode == 3
    assert b"stop: end the campaign" in again.stdout
    assert b"campaign run broken --decide CHOICE, one of " in again.stderr
    assert fresh.slurm("squeue", "-h", "-t", "all", "-o", "%i").split() == sent
    assert campaign(fresh, "run", "broken", "--decide", "nonsense").returncode == 2
    over = campaign(fresh, "run", "broken", "--decide", "stop", "--json")
    assert (over.returncode, json.loads(over.stdout)["status"]) == (0, "stopped")


@pytest.mark.proves("campaign-survives-crash")
def test_a_campaign_that_is_killed_again_and_again_loses_no_run_and_does_none_twice(fresh: Place):
    """Several one after the other, until there were enough kills."""
    chance, left, number = random.Random(14), KILLS, 0  # noqa: S311 - moments, no secrets
    counting = f'{TRAIN}with open(f"ran-{{asked.out.parent.name}}.txt", "a") as log: print(asked.out.stem, file=log)\n'
    while left > 0:
        number += 1
        name = f"rates{number}"
        short = RATES_FILE.replace(str(list(RATES)), "[0.001, 0.003, 0.03, 0.3]").replace("runs/", f"runs/{name}/")
        laboratory(fresh, name, short, {"train.py": counting})
        left = killed(fresh, name, left, chance)
        done = campaign(fresh, "run", name, "--json")
        assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "finished"), done.stderr
        listed = (fresh.project / f"ran-{name}.txt").read_text().split()
        assert sorted(listed) == sorted(set(listed))
        assert len(listed) == json.loads(done.stdout)["counts"]["done"] == 1 + 9


def killed(place: Place, name: str, most: int, chance: random.Random) -> int:
    """Run a campaign and kill it at moments by chance, until it is over; how many kills are left."""
    argv = place.as_user([sys.executable, "-m", "slurm_agent_tools", "campaign", "run", name, "--json"])
    while most > 0:
        running = subprocess.Popen(
            argv, cwd=place.project, env=place.environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            running.wait(chance.uniform(0.5, 5))
            break
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
            most -= 1
    return most
