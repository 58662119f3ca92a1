"""A stage of a pipeline whose speed follows a law that nobody told the campaign: it is run as a job, and asked by tests.

Amdahl's law for CPUs; a chunk that is neither too small nor too large; memory below what is needed costs time, and what
is asked for costs a little too.
"""

import argparse
import json
import math
import os
import pathlib
import time


def seconds(law: dict[str, float], cpus: int, chunk: int, memory: float) -> float:
    """How long the stage takes; memory in GB."""
    run = law["work"] * (law["serial"] + (1 - law["serial"]) / cpus)
    run *= 1 + 0.15 * math.log2(chunk / law["chunk"]) ** 2
    run *= 1 + 0.5 * max(0.0, math.log2(law["needs"] / memory))
    return float(run + law["wait"] * (cpus + memory))


def main() -> None:
    """Sleep as long as the law says for what this job was given, and write down how long it took."""
    parser = argparse.ArgumentParser()
    parser.add_argument("stage")
    parser.add_argument("--chunk", type=int)
    parser.add_argument("--rows", type=float)
    parser.add_argument("--out", type=pathlib.Path)
    asked, begun = parser.parse_args(), time.monotonic()
    law = json.loads(pathlib.Path("law.json").read_text())[asked.stage]
    cpus, memory = int(os.environ["SLURM_JOB_CPUS_PER_NODE"]), int(os.environ["SLURM_MEM_PER_NODE"]) / 1024
    time.sleep(seconds(law, cpus, asked.chunk, memory) * asked.rows)
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps({"seconds": time.monotonic() - begun}))


if __name__ == "__main__":
    main()
