"""Small campaigns for a real Slurm: their files and the programs that they run."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.faces import Place

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
    """Of lines as `8 3-12%4 PENDING`, `8 2 RUNNING` or `9 N/A RUNNING`."""
    rows = [line.split() for line in lines]
    running = Counter(job for job, _, state in rows if state != "PENDING")
    found = running.total()
    for job, tasks, state in rows:
        if state == "PENDING":
            spans, _, throttle = tasks.partition("%")
            ends = [span.split("-") for span in spans.split(",")]
            count = sum(int(span[-1]) - int(span[0]) + 1 if len(span) > 1 else 1 for span in ends)
            found += max(0, min(count, int(throttle) - running[job])) if throttle else count
    return found
