"""What nine everyday tasks cost in bytes of answers: the reference transcript, played over the Slurm in memory.

Each task is the calls that an agent makes, through MCP. Counted is what a client hands to its model: of every answer
the structured content or the text, whichever is longer. 312 KB is what nine such tasks took in 111 calls before
answers were brief.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from benchmarks.table import Row
from mcp import Client
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.devcluster.fake.endings import Ending
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.settings import Settings

KB = 1000
BEFORE = 312 * KB
MOST = 110 * KB

HEAD = """#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --partition={partition}
#SBATCH --mem={memory}
#SBATCH --time={time}
#SBATCH --output=logs/%x-%j.out
#SBATCH --error=logs/%x-%j.err
"""
TRAIN = HEAD + "#SBATCH --gpus=1\n#SBATCH --cpus-per-task=8\n\nsrun python train.py --config configs/base.yaml\n"
SWEEP = (
    HEAD.replace("%j", "%A_%a") + "#SBATCH --cpus-per-task=2\n\nsrun python evaluate.py --seed $SLURM_ARRAY_TASK_ID\n"
)
FAULTY = """#!/bin/bash
#SBATCH --job-name=finetune
#SBATCH --partition=gpu
#SBATCH --gpus=8
#SBATCH --mem=900G
#SBATCH --time=01:00:00
#SBATCH --output=logs/%x-%j.out
export CUDA_VISIBLE_DEVICES=0,1
until python train.py --config configs/base.yaml; do
    sleep 60
done
sbatch next.sh
"""
CONFIG = """experiment: base
seed: 1
model: {name: resnet50, layers: 50}
data: {path: data/train, workers: 8}
training: {epochs: 10, batch_size: 256, learning_rate: 0.1, optimizer: sgd}
"""
PROGRAM = "import sys\nprint('training')\n"
EPOCHS = "".join(f"epoch {n}/10 train_loss: {2 / n:.3f} val_accuracy: {0.5 + n / 25:.3f}\n" for n in range(1, 11))
KILLED = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId={job}.0. Some of the step tasks have been OOM Killed.\n"
)
MISSING = (
    'Traceback (most recent call last):\n  File "evaluate.py", line 3, in <module>\n    rows = open(path)\n'
    "FileNotFoundError: [Errno 2] No such file or directory: 'data/seed.csv'\n"
)
GOOD = Ending(after=600, output=EPOCHS, memory=9 * 2**30)


@dataclass(frozen=True, slots=True)
class Told:
    """One answer: to which task and tool, and how many bytes a client hands to its model."""

    task: str
    tool: str
    size: int
    body: dict[str, Any]


@dataclass
class Agent:
    """One agent in one project, and what it was told."""

    client: Client
    slurm: FakeSlurm
    project: Path
    detail: str = "brief"
    told: list[Told] = field(default_factory=list)
    task: str = ""

    @property
    def size(self) -> int:
        """Bytes of all answers."""
        return sum(one.size for one in self.told)

    async def __call__(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One call; the structured answer."""
        arguments |= {} if self.detail == "brief" else {"detail": self.detail}
        result = await self.client.call_tool(tool, arguments)
        body = result.structured_content or {}
        if body.get("error", {}).get("code") == "internal":
            raise RuntimeError(f"{tool} {arguments}: {body}")
        self.told.append(Told(self.task, tool, max(shown(result)), body))
        return body

    def write(self, name: str, text: str) -> str:
        """A file of the project; its name."""
        file = self.project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return name

    async def ended(self, job_id: str, seconds: float = 300) -> dict[str, Any]:
        """wait_for_job again and again, until it ended."""
        while (told := await self("wait_for_job", job_id=job_id, timeout_seconds=seconds))["status"] != "finished":
            pass
        return told


def shown(result: Any) -> tuple[int, int]:
    """Bytes of the structured content and of the text of one answer."""
    text = "".join(part.text for part in result.content)
    whole = json.dumps(result.structured_content, separators=(",", ":"), ensure_ascii=False)
    return len(whole.encode()), len(text.encode())


async def train(agent: Agent) -> None:
    """Submit a training, wait, read its metrics, keep the result."""
    agent.slurm.next_job(GOOD)
    script = agent.write("train.sh", TRAIN.format(name="train", partition="gpu", memory="16G", time="02:00:00"))
    await agent("get_status")
    await agent("validate_config", config_path="configs/base.yaml")
    await agent("validate_config", config_path=script)
    await agent("submit_job", script=script, dry_run=True)
    job = (await agent("submit_job", script=script))["job_id"]
    await agent("wait_for_job", job_id=job)
    await agent("get_status", sections=["jobs"])
    await agent.ended(job, 120)
    await agent("wait_for_job", job_id=job)
    await agent("analyze_log", job_id=job, mode="metrics")
    metrics = {"val_accuracy": 0.9, "train_loss": 0.2}
    await agent("save_result", name="base", status="success", job_id=job, config="configs/base.yaml", metrics=metrics)
    await agent("get_status", sections=["results"])


async def five_faults(agent: Agent) -> None:
    """A script with five faults, corrected in three rounds."""
    script = agent.write("finetune.sh", FAULTY)
    agent.slurm.next_job(GOOD)
    await agent("get_status")
    await agent("validate_config", config_path=script)
    await agent("submit_job", script=script)
    agent.write(script, FAULTY.replace("export CUDA_VISIBLE_DEVICES=0,1\n", "").replace("sbatch next.sh\n", ""))
    await agent("submit_job", script=script)
    once = FAULTY.split("export", maxsplit=1)[0] + "srun python train.py --config configs/base.yaml\n"
    agent.write(script, once)
    await agent("submit_job", script=script)
    once = once.replace("--gpus=8", "--gpus=1").replace("900G", "16G")
    agent.write(script, once)
    await agent("validate_config", config_path=script)
    await agent("submit_job", script=script, dry_run=True)
    job = (await agent("submit_job", script=script))["job_id"]
    await agent.ended(job, 300)
    await agent("analyze_log", job_id=job)


async def array(agent: Agent) -> None:
    """An array of 40 of which six fail; why, and those once more."""
    script = agent.write("sweep.sh", SWEEP.format(name="sweep", partition="cpu", memory="4G", time="00:30:00"))
    bad = Ending(exit_code=1, after=30, output="reading\n", errors=MISSING)
    agent.slurm.next_job(Ending(after=300, output=EPOCHS), tasks=dict.fromkeys((3, 7, 11, 19, 23, 31), bad))
    await agent("get_status")
    await agent("validate_config", config_path=script)
    job = (await agent("submit_job", script=script, array="0-39%4"))["job_id"]
    for _ in range(3):
        await agent("wait_for_job", job_id=job)
    await agent("get_status", sections=["jobs", "errors"])
    await agent.ended(job, 600)
    await agent("wait_for_job", job_id=job)
    await agent("analyze_log", job_id=job)
    await agent("analyze_log", job_id=f"{job}_3")
    await agent("analyze_log", job_id=f"{job}_7", mode="error")
    await agent("submit_job", script=script, array="3,7,11,19,23,31%4")
    await agent("get_status", sections=["jobs", "queue"])
    agent.slurm.next_job(Ending(after=300, output=EPOCHS))
    again = await agent(
        "submit_job", script=script, array="3,7,11,19,23,31%4", justification="the missing files are there now"
    )
    await agent.ended(again["job_id"])
    await agent("save_result", name="sweep", status="success", job_id=again["job_id"], metrics={"accuracy": 0.81})


async def compare(agent: Agent) -> None:
    """Three runs beside each other."""
    for number, rate in enumerate((0.1, 0.05, 0.01)):
        config = agent.write(f"configs/rate-{number}.yaml", CONFIG.replace("0.1", str(rate)))
        metrics = {"val_accuracy": 0.9 - number / 20, "train_loss": 0.2 + number / 10, "epochs": 10}
        more = {} if number == 0 else {"baseline": "rate-0"}
        await agent("save_result", name=f"rate-{number}", status="success", config=config, metrics=metrics, **more)
    await agent("get_status", sections=["results"])
    for number in (1, 2):
        await agent("compare_results", baseline="rate-0", target=f"rate-{number}")
    await agent("compare_results", baseline="rate-1", target="rate-2", metrics_only=True)


async def config(agent: Agent) -> None:
    """A configuration that is wrong in several ways, corrected."""
    wrong = (
        "experiment: wrong\ntraining: {epochs: ten, batch_size: -4, learning_rate: 40}\nslurm: {gpus: 16, memory: 2T}\n"
    )
    name = agent.write("configs/wrong.yaml", wrong)
    await agent("validate_config", config_path=name)
    agent.write(name, wrong.replace("ten", "10").replace("-4", "64"))
    await agent("validate_config", config_path=name)
    agent.write(name, wrong.replace("ten", "10").replace("-4", "64").replace("40", "0.1"))
    await agent("validate_config", config_path=name)
    agent.write(name, CONFIG + "slurm: {gpus: 1, memory: 16G}\n")
    await agent("validate_config", config_path=name)
    await agent("validate_config", config_path=name, strict=True)


async def look(agent: Agent) -> None:
    """What is going on: every section, in the morning and later."""
    await agent("get_status")
    for sections in (
        ["jobs"],
        ["gpu", "queue"],
        ["partitions"],
        ["nodes"],
        ["errors"],
        ["results"],
        ["policy"],
        ["disk"],
    ):
        await agent("get_status", sections=sections)
    await agent("get_status", detailed=True)
    await agent("analyze_log", recent_errors=5)
    await agent("get_status", refresh=True)


async def cancel(agent: Agent) -> None:
    """A run that diverges is cancelled."""
    script = agent.write("diverge.sh", TRAIN.format(name="diverge", partition="gpu", memory="16G", time="04:00:00"))
    lost = "".join(f"epoch {n}/90 train_loss: {10**n}\n" for n in range(1, 4)) + "epoch 4/90 train_loss: nan\n"
    agent.slurm.next_job(Ending(after=10_000, output=lost))
    await agent("get_status")
    job = (await agent("submit_job", script=script))["job_id"]
    for _ in range(3):
        await agent("wait_for_job", job_id=job)
    await agent("analyze_log", job_id=job)
    await agent("cancel_job", job_id=job, reason="the loss is not a number")
    await agent.ended(job, 45)
    await agent("get_status")
    await agent("save_result", name="diverge", status="cancelled", job_id=job, notes="loss is not a number")


async def generate(agent: Agent) -> None:
    """A script is written for a command, and runs."""
    await agent("get_status")
    command = "python train.py --config configs/base.yaml --epochs 20"
    await agent("generate_script", name="longer", command=command, gpus=64)
    path = (
        await agent("generate_script", name="longer", command=command, gpus=1, memory="16G", time_limit="02:00:00")
    )["path"]
    await agent("validate_config", config_path=path)
    agent.slurm.next_job(GOOD)
    job = (await agent("submit_job", script=path))["job_id"]
    await agent.ended(job, 120)
    await agent("analyze_log", job_id=job, mode="metrics")
    await agent("save_result", name="longer", status="success", job_id=job, metrics={"val_accuracy": 0.91})


async def resume(agent: Agent) -> None:
    """A run is killed for memory, asks for more, and goes on from its checkpoint."""
    script = TRAIN.format(name="large", partition="gpu", memory="8G", time="02:00:00")
    agent.write("large.sh", script)
    killed = Ending(fate="out_of_memory", after=200, memory=8 * 2**30, output=EPOCHS[:150], errors=KILLED)
    agent.slurm.next_job(killed)
    await agent("get_status")
    job = (await agent("submit_job", script="large.sh"))["job_id"]
    await agent.ended(job, 120)
    await agent("analyze_log", job_id=job)
    await agent("analyze_log", job_id=job, mode="error")
    await agent("submit_job", script="large.sh")
    await agent("get_status", sections=["jobs", "queue"])
    agent.write("large.sh", script.replace("8G", "16G").replace("base.yaml", "base.yaml --resume checkpoints/last.pt"))
    agent.slurm.next_job(GOOD)
    why = "it was killed for memory at 8G; the new request is twice that"
    again = (await agent("submit_job", script="large.sh", justification=why))["job_id"]
    await agent.ended(again, 300)
    await agent("wait_for_job", job_id=again)
    await agent("analyze_log", job_id=again)
    await agent(
        "save_result", name="large", status="success", job_id=again, metrics={"val_accuracy": 0.93}, baseline="base"
    )
    await agent("compare_results", baseline="base", target="large")


TASKS: tuple[Callable[[Agent], Awaitable[None]], ...] = (
    train, five_faults, array, compare, config, look, cancel, generate, resume,
)  # fmt: skip


async def replay(folder: Path, detail: str = "brief") -> Agent:
    """Play the whole transcript in an empty folder; the agent with its costs."""
    slurm = FakeSlurm(first_job_id=1041)
    box = fake_toolbox(folder, slurm)
    project = Path(box.context.project)
    async with Client(build_server(box, Settings()), raise_exceptions=False) as client:
        agent = Agent(client, slurm, project, detail)
        for name, text in {"configs/base.yaml": CONFIG, "train.py": PROGRAM, "evaluate.py": PROGRAM}.items():
            agent.write(name, text)
        agent.write("data/train/x", "")
        for task in TASKS:
            agent.task = task.__name__
            await task(agent)
    await box.close()
    return agent


def rows() -> list[Row]:
    """Bytes of the answers of all nine, beside what they took before."""
    with tempfile.TemporaryDirectory() as folder:
        agent = anyio.run(replay, Path(folder))
    what = f"answers of nine everyday tasks in {len(agent.told)} calls"
    return [Row(what, agent.size / KB, "KB", "before answers were brief", BEFORE / KB, limit=MOST / BEFORE)]
