"""More than 300 real jobs of known use of memory and time: what `history` remembers of them, and what it advises.

Each job says itself how long it ran. The shapes differ in use and request; two also have runs that Slurm ended.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from tests.system.faces import Place

from slurm_agent_tools.insights.sizing import FLOOR

MIB = 2**20
RUNS = 24
HELD = 3  # seconds for which the memory is held: it is sampled every second
SLACK = 1.6
HOLD = f"""\
import sys, time
begun = time.time()
size, seconds = int(sys.argv[1]), float(sys.argv[2])
held = b"x" * (size * {MIB})
time.sleep(min({HELD}, seconds))
held = None
time.sleep(max(0, seconds - (time.time() - begun)))
print(time.time())
"""


@dataclass(frozen=True)
class Shape:
    """Jobs of one script: `uses` (MiB, seconds) of each run, and what the script asks for (MiB, minutes, CPUs)."""

    name: str
    uses: tuple[tuple[int, int], ...]
    memory: int
    minutes: int
    cpus: int = 2
    partition: str = "cpu"
    too_large: int = 0  # further runs that use more memory than they may
    too_long: int = 0  # and that sleep until their time limit ends them

    @property
    def runs(self) -> int:
        return len(self.uses) + self.too_large + self.too_long

    def script(self) -> str:
        asked = (
            f"--job-name={self.name}", f"--partition={self.partition}", f"--mem={self.memory}M",
            f"--time={self.minutes}", f"--cpus-per-task={self.cpus}",
        )  # fmt: skip
        head = "".join(f"#SBATCH {option}\n" for option in asked)
        return f"#!/bin/bash\n{head}#SBATCH --output=logs/slurm/%x-%j.out\nexec /usr/bin/python3 -ISE hold.py $1 $2\n"

    def calls(self) -> list[str]:
        """One line for each run: the words behind sbatch. The slow ones first."""
        late = [(8, 600)] * self.too_long
        large = [(self.memory * 2, 5)] * self.too_large
        words = f"--acctg-freq=task=1 {self.name}.sh"
        return [f"{words} {size} {seconds}" for size, seconds in (*late, *large, *self.uses)]

    def known(self, which: int) -> int:
        """The 95th percentile, by nearest rank, of what the completed runs used: MiB (0) or seconds (1)."""
        values = sorted(use[which] for use in self.uses)
        return values[math.ceil(0.95 * len(values)) - 1]


def spread(largest: int, seconds: int, runs: int = RUNS) -> tuple[tuple[int, int], ...]:
    """Runs from four fifths of the largest use up to it."""
    steps = [0.8 + 0.2 * number / (runs - 1) for number in range(runs)]
    return tuple((round(largest * step), round(seconds * step)) for step in steps)


ORDINARY = (
    Shape("small", spread(80, 12), memory=128, minutes=2),
    Shape("small-asks-much", spread(80, 8), memory=2000, minutes=60),
    Shape("medium", spread(120, 10), memory=256, minutes=30),
    Shape("medium-asks-little", spread(120, 9), memory=160, minutes=1),
    Shape("large", spread(200, 12), memory=1000, minutes=600),
    Shape("steady", ((100, 10),) * RUNS, memory=400, minutes=5),
    Shape("steady-long", ((90, 14),) * RUNS, memory=300, minutes=3),
    Shape("many-cpus", spread(110, 9), memory=500, minutes=20, cpus=4),
    Shape("on-gpu-nodes", spread(140, 12), memory=700, minutes=10, partition="gpu"),
    Shape("larger-on-gpu-nodes", spread(170, 10), memory=340, minutes=45, partition="gpu"),
    Shape("wide-on-gpu-nodes", spread(95, 13), memory=1500, minutes=4, partition="gpu"),
    Shape("largest-on-gpu-nodes", spread(240, 8), memory=600, minutes=90, partition="gpu"),
)
OUTGROWS = Shape("outgrows-its-memory", spread(80, 10, 8), memory=120, minutes=5, too_large=4)
OVERRUNS = Shape("overruns-its-time", spread(80, 10, 8), memory=128, minutes=1, too_long=3)
TOO_LARGE = Shape("is-too-large", ((80, 10),), memory=100, minutes=5, too_large=4)
SHAPES = (OVERRUNS, *ORDINARY, OUTGROWS, TOO_LARGE)


@dataclass(frozen=True)
class Told:
    """What `history --like` said of a shape, and how long its completed runs took by their own clocks."""

    reply: dict[str, Any]
    seconds: list[float]


@pytest.fixture(scope="module")
def sent(place: Place) -> Place:
    """All jobs are in the queue."""
    (place.project / "logs/slurm").mkdir(parents=True)
    (place.project / "hold.py").write_text(HOLD)
    for shape in SHAPES:
        (place.project / f"{shape.name}.sh").write_text(shape.script())
    place.own()
    lines = [line for shape in SHAPES for line in shape.calls()]
    place.slurm("xargs", "-P3", "-L1", "sbatch", "--parsable", stdin="\n".join(lines).encode())
    return place


@pytest.fixture(scope="module")
def told(sent: Place) -> dict[str, Told]:
    """Every job is over but for those that wait for their time limit, which takes Slurm longest."""
    begun, shapes = time.monotonic(), [shape for shape in SHAPES if not shape.too_long]
    ended(sent, shapes)
    print(f"{len(sacct(sent, SHAPES))} jobs, {time.monotonic() - begun:.0f} s")  # noqa: T201 - the figures
    starts = dict(row.split("|") for row in sacct(sent, shapes, "JobID,Start"))
    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(lambda shape: likest(sent, shape), shapes))
    return {shape.name: Told(reply, ran(sent, shape, starts)) for shape, reply in zip(shapes, replies, strict=True)}


def ended(place: Place, shapes: Sequence[Shape]) -> None:
    for _ in range(300):
        states = sacct(place, shapes)
        if len(states) == sum(shape.runs for shape in shapes) and not {"PENDING", "RUNNING", "COMPLETING"} & {*states}:
            return
        time.sleep(0.5)
    raise AssertionError(f"the jobs did not end: {sorted(set(states))}")


def sacct(place: Place, shapes: Sequence[Shape], columns: str = "State") -> list[str]:
    names = ",".join(shape.name for shape in shapes)
    asked = ("sacct", "-n", "-P", "-X", "-S", "now-1hour", f"--name={names}", "-o", columns)
    return place.slurm("env", "SLURM_TIME_FORMAT=%s", *asked).split()


def ran(place: Place, shape: Shape, starts: dict[str, str]) -> list[float]:
    """Seconds from Slurm's start of each completed run to the moment in which it was done by its own clock."""
    files = (place.project / "logs/slurm").glob(f"{shape.name}-[0-9]*.out")
    ends = {path.stem.rpartition("-")[2]: path.read_text().split() for path in files}
    return [float(words[0]) - int(starts[job]) for job, words in ends.items() if len(words) == 1]


def likest(place: Place, shape: Shape) -> dict[str, Any]:
    return history(place, f"--like={shape.name}.sh", "--limit=500")


def history(place: Place, *words: str) -> dict[str, Any]:
    done = place.run([sys.executable, "-m", "slurm_agent_tools", "history", "--json", *words])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_there_are_more_than_300_jobs_of_more_than_10_shapes(told):
    jobs = [job for name, one in told.items() for job in one.reply["jobs"] if job["name"] == name]
    assert len(jobs) == sum(shape.runs for shape in SHAPES if shape.name in told) >= 300
    assert len(ORDINARY) >= 10
    assert {job["managed"] for job in jobs} == {False}


@pytest.mark.proves("sizes-from-history")
@pytest.mark.parametrize("shape", ORDINARY, ids=lambda shape: shape.name)
class TestWhatIsAdvisedFitsWhatWasUsed:
    def test_memory_is_above_the_known_use_and_below_16_tenths_of_it_and_the_floor(self, told, shape):
        advice = told[shape.name].reply["advice"]
        known, memory = shape.known(0) * MIB, advice["memory"]
        print(shape.name, known // MIB, memory["used"] / MIB, memory["recommended"] // MIB)  # noqa: T201 - the figures
        assert (advice["basis"], memory["runs"]) == (shape.runs, shape.runs), advice
        assert known <= memory["used"] <= memory["recommended"] <= SLACK * known + FLOOR
        assert advice["recommended"]["memory_bytes"] == memory["recommended"]

    def test_time_is_above_the_known_use_and_below_16_tenths_of_it_but_for_whole_minutes(self, told, shape):
        figure, seconds = told[shape.name].reply["advice"]["time"], sorted(told[shape.name].seconds)
        assert len(seconds) == shape.runs
        known = seconds[math.ceil(0.95 * len(seconds)) - 1]
        print(shape.name, shape.known(1), known, figure["used"], figure["needed"])  # noqa: T201 - the figures
        assert max(shape.known(1), known - 1) <= figure["needed"] <= SLACK * known
        assert figure["recommended"] == math.ceil(figure["needed"] / 60) * 60

    def test_cpus_are_those_that_were_busy_and_the_request_is_warned_of_where_it_is_wide(self, told, shape):
        advice = told[shape.name].reply["advice"]
        assert advice["cpus"]["recommended"] == 1
        assert any(text.startswith("CPUs") for text in advice["warnings"])
        wide = shape.memory > 2 * advice["memory"]["most"] / MIB
        assert any(text.startswith("memory") for text in advice["warnings"]) == wide

    def test_the_over_request_is_in_per_cent_of_what_was_used(self, told, shape):
        advice = told[shape.name].reply["advice"]
        assert advice["memory"]["over_percent"] == round((shape.memory * MIB / advice["memory"]["used"] - 1) * 100)
        assert advice["time"]["over_percent"] == round((shape.minutes * 60 / advice["time"]["used"] - 1) * 100)


@pytest.mark.proves("sizes-from-history")
class TestWhatFailedForALimitIsRaised:
    def test_memory_that_was_too_little_for_some_runs_is_raised(self, told):
        advice = told[OUTGROWS.name].reply["advice"]
        assert advice["basis"] == len(OUTGROWS.uses)
        assert advice["memory"]["failed"] == OUTGROWS.memory * MIB
        assert advice["memory"]["recommended"] > OUTGROWS.memory * MIB
        assert "was too little" in " ".join(advice["warnings"])

    def test_memory_that_was_too_little_is_raised_even_from_too_few_runs(self, told):
        advice = told[TOO_LARGE.name].reply["advice"]
        assert (advice["basis"], advice["enough"]) == (1, False)
        assert "Too few runs" in advice["summary"]
        assert advice["memory"]["recommended"] > TOO_LARGE.memory * MIB
        assert advice["time"]["recommended"] is None


@pytest.mark.proves("sizes-from-history")
def test_submit_job_says_what_runs_that_did_not_come_through_the_guard_used(place, told):
    shape = ORDINARY[1]
    place.cli("get_status")
    code, reply = place.cli("submit_job", f"--script={shape.name}.sh", "--args=80", "--args=4", "--dry-run")
    assert (code, reply["status"]) == (0, "dry_run"), reply
    advice = told[shape.name].reply["advice"]
    assert (reply["sizing"]["runs"], reply["sizing"]["warnings"]) == (shape.runs, advice["warnings"])
    assert reply["sizing"]["recommended"] == advice["recommended"]


@pytest.mark.proves("jobs-are-remembered")
class TestTheMemoryOfJobs:
    def test_an_ended_job_of_the_guard_is_found_by_tag_and_text_with_its_use_and_result(self, place, told):
        place.cli("get_status")
        words = ("--script=steady.sh", "--job-name=guarded", "--run-id=sweep-7", "--args=100", "--args=4")
        code, sent = place.cli("submit_job", *words)
        assert code == 0, sent
        assert place.cli("wait_for_job", f"--job-id={sent['job_id']}", "--timeout-seconds=60")[0] == 0
        code, saved = place.cli("save_result", "--name=steady", "--status=success", f"--job-id={sent['job_id']}")
        assert code == 0, saved
        (found,) = history(place, "--tag=sweep-7", "--tag=completed")["jobs"]
        assert (found["job_id"], found["managed"], found["state"]) == (sent["job_id"], True, "COMPLETED")
        assert (found["script_path"], found["run_id"]) == ("steady.sh", "sweep-7")
        assert found["result_path"] == saved["file_path"]
        assert found["requested"]["memory_bytes"] == 400 * MIB
        assert found["usage"]["elapsed_seconds"] >= 4
        assert history(place, "--query=GUARDED steady.sh")["jobs"] == [found]
        assert history(place, "--tag=sweep-7", "--tag=failed")["jobs"] == []

    def test_the_likest_to_a_script_are_its_own_runs(self, told):
        for shape in ORDINARY:
            jobs = told[shape.name].reply["jobs"]
            assert {job["name"] for job in jobs[: shape.runs]} == {shape.name}
            assert [job["likeness"] for job in jobs] == sorted((job["likeness"] for job in jobs), reverse=True)


@pytest.fixture(scope="module")
def overran(told: dict[str, Told], sent: Place) -> Place:
    """Every job is over."""
    ended(sent, SHAPES)
    return sent


@pytest.mark.proves("sizes-from-history")
def test_a_time_limit_that_ended_some_runs_is_raised(overran):
    advice = likest(overran, OVERRUNS)["advice"]
    assert advice["basis"] == len(OVERRUNS.uses)
    assert advice["time"]["failed"] == 60
    assert advice["time"]["recommended"] >= 90


@pytest.mark.proves("jobs-are-remembered")
def test_tags_are_all_or_any_and_each_fate_is_found_by_its_own(overran):
    ends = {state: history(overran, f"--tag={state}", "--limit=500")["jobs"] for state in ("timeout", "completed")}
    assert {job["name"] for job in ends["timeout"]} == {OVERRUNS.name}
    either = history(overran, "--any", "--tag=timeout", "--tag=completed", "--limit=500")["jobs"]
    assert len(either) == len(ends["timeout"]) + len(ends["completed"]) >= 300
    killed = history(overran, "--tag=host-out-of-memory")["jobs"]
    assert {job["name"] for job in killed} == {OUTGROWS.name, TOO_LARGE.name}
