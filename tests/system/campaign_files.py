"""Small campaigns for a real Slurm: their files and the programs that they run."""

from __future__ import annotations

import inspect
import json
import statistics
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.system.faces import Place
from tests.unit.campaigns.functions import BRANIN
from tests.unit.campaigns.simulated import Simulation, by_loss

TRAIN = """import argparse, json, math, pathlib, time
parser = argparse.ArgumentParser()
for name, kind in (("lr", float), ("batch-size", int), ("epochs", int)):
    parser.add_argument(f"--{name}", type=kind)
parser.add_argument("--out", type=pathlib.Path)
asked, begun = parser.parse_args(), time.time()
time.sleep(0.3)
loss = (math.log10(asked.lr) + 1.5) ** 2 + (0.05 if asked.batch_size == 32 else 0.1) + 1 / asked.epochs
asked.out.parent.mkdir(parents=True, exist_ok=True)
asked.out.write_text(json.dumps({"val_loss": loss, "begun": begun, "ended": time.time()}))
"""
"""The best of RATES is 0.03, and of the batch sizes 32."""

RATES = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5, 1.0)

RATES_FILE = f"""campaign: 1
objective: {{metric: val_loss, direction: minimize}}
stages:
  - name: training
    kind: cpu
    command: [python3, train.py, --out, "runs/{{trial}}.json"]
    parameters:
      lr: {{default: 0.0001, argument: --lr}}
      batch_size: {{default: 16, argument: --batch-size}}
      epochs: {{default: 4, argument: --epochs, length: true}}
    resources: {{cpus: 1, memory: 100M, time_limit: 5min, partition: cpu}}
    smoke: {{change: {{epochs: 1}}, time_limit: 2min}}
    passes: {{finite: [val_loss], files: ["runs/{{trial}}.json"]}}
    metrics: {{file: "runs/{{trial}}.json"}}
rounds:
  - {{kind: smoke}}
  - kind: grid
    hypothesis: A larger rate learns faster until the steps get too long.
    vary: {{lr: {list(RATES)}, batch_size: [16, 32]}}
limits: {{cpu_hours: 10, trials: 40, at_once: 4}}
"""

HOG = """import pathlib, sys, time
size = int(sys.argv[2])
if pathlib.Path("ruin").exists():
    raise RuntimeError("the data set is broken")
held = bytearray(size * 2**20)
for place in range(0, len(held), 4096):
    held[place] = 1
time.sleep(30 if size > 100 else 0.3)
print("val_loss=0.5")
"""

HOG_FILE = """campaign: 1
objective: {metric: val_loss, direction: minimize}
stages:
  - name: training
    kind: cpu
    command: [python3, hog.py]
    parameters:
      megabytes: {default: 10, argument: --megabytes}
    resources: {cpus: 1, memory: 100M, time_limit: 5min, partition: cpu}
    smoke: {time_limit: 2min}
    metrics: {pattern: {val_loss: 'val_loss=([0-9.]+)'}}
rounds:
  - {kind: smoke}
  - kind: grid
    hypothesis: More data is no worse.
    vary: {megabytes: [10, 250]}
limits: {cpu_hours: 5, trials: 12, at_once: 2}
fixes:
  - {failure: host-out-of-memory, multiply: {megabytes: 0.1}, at_most: 1}
"""


QUICK = {"SLURM_AGENT_SLURM__POLL_SCALE": "0.1", "SLURM_AGENT_SLURM__CACHE_SECONDS": "1"}


def laboratory(place: Place, name: str, file: str, programs: dict[str, str]) -> None:
    """A project with one campaign, whose jobs are looked at as often as short ones need it."""
    place.extra.update(QUICK)
    (place.project / "campaigns").mkdir(exist_ok=True)
    (place.project / f"campaigns/{name}.yaml").write_text(file)
    for path, text in programs.items():
        (place.project / path).write_text(text)
    place.own()


@contextmanager
def squeue_watched(place: Place) -> Iterator[list[int]]:
    """How many jobs of the user are active, again and again: of an array as many tasks as its throttle lets."""
    seen, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.2):
            listed = place.slurm("squeue", "-h", "-t", "pending,running", "-o", "%F %K %T", f"-u{place.cluster.user}")
            seen.append(active(listed.splitlines()))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield seen
    finally:
        over.set()
        watching.join()


def active(lines: list[str]) -> int:
    """Of lines as `8 3-12%4 PENDING`, `8 2 RUNNING` or `9 N/A RUNNING`.

    A task that is about to start may stand in a row of its own before it runs: it is one of those that the throttle
    of its array lets.
    """
    running, waiting, throttles = Counter[str](), Counter[str](), dict[str, int]()
    for job, tasks, state in (line.split() for line in lines):
        if state != "PENDING":
            running[job] += 1
            continue
        spans, _, throttle = tasks.partition("%")
        ends = [span.split("-") for span in spans.split(",")]
        waiting[job] += sum(int(span[-1]) - int(span[0]) + 1 if len(span) > 1 else 1 for span in ends)
        if throttle:
            throttles[job] = int(throttle)
    may_run = {job: min(count, max(0, throttles.get(job, count) - running[job])) for job, count in waiting.items()}
    return running.total() + sum(may_run.values())


# --- A search of a published function, each of its values computed by a job ------------------------------------------

BRANIN_PROGRAM = f"""import argparse, json, math, pathlib, random
parser = argparse.ArgumentParser()
for name in ("x1", "x2", "steps"):
    parser.add_argument(f"--{{name}}", type=float)
parser.add_argument("--out", type=pathlib.Path)

{inspect.getsource(BRANIN.function)}

asked = parser.parse_args()
error = {BRANIN.error} * max(0.0, 1 / asked.steps - 1 / 27)
value = {BRANIN.function.__name__}(asked.x1, asked.x2)
told = value + error * random.Random(repr((asked.x1, asked.x2, asked.steps))).gauss(0, 1)
asked.out.parent.mkdir(parents=True, exist_ok=True)
asked.out.write_text(json.dumps({{**vars(asked), "out": None, "loss": told, "true": value}}))
"""
"""Branin's function; a run of fewer than 27 steps tells it with an error."""

BRANIN_FILE = """campaign: 1
objective: {metric: loss, direction: minimize}
stages:
  - name: training
    kind: cpu
    command: [python3, branin.py, --out, "runs/{trial}.json"]
    parameters:
      x1: {default: -5.0, argument: --x1}
      x2: {default: 0.0, argument: --x2}
      steps: {default: 27, argument: --steps, length: true}
    resources: {cpus: 1, memory: 100M, time_limit: 5min, partition: cpu}
    smoke: {change: {steps: 1}, time_limit: 2min}
    metrics: {file: "runs/{trial}.json"}
rounds:
  - {kind: smoke}
  - hypothesis: The least value lies at one of three places.
"""


def lowest_of_branin(
    place: Place, name: str, this: Mapping[str, object], python: Path = Path(sys.executable)
) -> tuple[float, int]:
    """Run a campaign of this one round to its report; its lowest value at full length, and its runs, in longest ones.

    The baseline and the smoke run are none of them. `python`: the interpreter that advances the campaign.
    """
    lines = [f"    {field}: {json.dumps(value)}\n" for field, value in {**this, "vary": BRANIN.vary}.items()]
    limits = "limits: {cpu_hours: 10, trials: 60, at_once: 4}\n"
    laboratory(place, name, BRANIN_FILE + "".join(lines) + limits, {"branin.py": BRANIN_PROGRAM})
    done = place.run([str(python), "-m", "slurm_agent_tools", "campaign", "run", name, "--json"], seconds=300)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "finished"), (done.stdout, done.stderr)
    assert (place.project / f"campaigns/{name}.report.md").read_text().startswith("#")
    told = [json.loads(path.read_text()) for path in (place.project / "runs").glob("r1-*.json")]
    own = [one for one in told if (one["x1"], one["x2"]) != (-5.0, 0.0)]
    return min(one["true"] for one in own if one["steps"] == 27), round(sum(one["steps"] for one in own) / 27)


def lowest_by_chance(trials: int) -> float:
    """The median, over ten simulated campaigns, of the lowest of so many places taken by chance."""
    found = []
    for seed in range(10):
        simulation = Simulation(
            BRANIN.campaign({"kind": "random", "vary": BRANIN.vary, "trials": trials}), f"seed {seed}"
        )
        ran = simulation.round(0, by_loss(BRANIN.measured))
        found.append(min(BRANIN.true(trial) for trial in ran if trial.purpose != "baseline"))
    return statistics.median(found)
