"""One answer tells all that is wrong of one kind, and what it asks for keeps the layout of the job."""

from __future__ import annotations

import pytest
from tests.unit.policy.kept_work import LOADED, follow, judge, spoken

SCRIPT = "scripts/job.sh"


async def remedies(*lines: str) -> dict[str, str]:
    """The remedy of each rule that speaks about a script of these lines."""
    text = "\n".join(["#!/bin/bash", *lines, ""])
    _, decision = await judge({SCRIPT: text}, SCRIPT, LOADED)
    return {one.id: one.remedy or "" for one in spoken(decision)}


async def after(*lines: str) -> str:
    """The script after one round of its first ways; it is allowed then."""
    done = await follow("\n".join(["#!/bin/bash", *lines, ""]))
    assert (done.rounds, done.broken) == (1, [])
    return done.text.removeprefix("#!/bin/bash\n")


async def test_every_path_that_lies_elsewhere_is_told_at_once():
    text = await after(
        "#SBATCH --chdir=/scratch/a", "#SBATCH --output=/scratch/%j.out", "#SBATCH --error=/scratch/%j.err", "./x"
    )

    assert text == "#SBATCH --chdir=.\n#SBATCH --output=%x-%j.out\n#SBATCH --error=%x-%j.err\n./x\n"


async def test_two_paths_of_one_line_are_one_step():
    told = (await remedies("#SBATCH -p gpu -o /scratch/a -e /scratch/b", "./x"))["path"]

    assert told == (
        "Replace line 2 (`#SBATCH -p gpu -o /scratch/a -e /scratch/b`) by:\n"
        "#SBATCH --partition=gpu\n#SBATCH --output=%x-%j.out\n#SBATCH --error=%x-%j.err"
    )


@pytest.mark.parametrize(
    ("line", "log"),
    [
        ("#SBATCH -D policies -o project.yaml", "/home/ada/project/slurm-%j.out"),
        ("#SBATCH -J ../../x -o logs/%x", "slurm-%j.out"),
    ],
)
async def test_a_log_is_put_where_it_may_be(line: str, log: str):
    assert f"#SBATCH --output={log}\n" in await after(line, "./x")


async def test_options_that_are_misspelt_and_those_that_are_not_allowed_are_told_at_once():
    text = await after("#SBATCH --memm=4G", "#SBATCH --bbf=b.txt", "#SBATCH --time=5hours", "./x")

    assert text == "#SBATCH --time=05:00:00\n./x\n"


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["-N 4", "--gres=gpu:a100:4"], ["--nodes=1", "--gres=gpu:a100:4"]),
        (["--nodes=8", "--gpus-per-node=2", "--ntasks=16"], ["--nodes=2", "--ntasks=4", "--gpus-per-node=2"]),
        (["--nodes=1", "--gpus-per-node=a100:8", "--ntasks-per-node=8"],
         ["--nodes=1", "--ntasks-per-node=4", "--gpus-per-node=a100:4"]),
        (["--nodes=4", "--gpus=16"], ["--nodes=1", "--gpus=4"]),
        (["-n 16", "--gpus-per-task=1"], ["--ntasks=4", "--gpus-per-task=1"]),
        (["-N 4", "-n 16", "--gpus-per-task=1"], ["--nodes=1", "--ntasks=4", "--gpus-per-task=1"]),
        (["--gres=gpu:a100:3,gpu:v100:3"], ["--gpus=4"]),
        (["-n 32", "--ntasks-per-gpu=2"], ["-n 32", "--gpus=4"]),
    ],
)  # fmt: skip
async def test_gpus_are_cut_in_the_layout_that_the_job_is_written_for(lines: list[str], left: list[str]):
    told = (await remedies(*(f"#SBATCH {line}" for line in lines), "#SBATCH --mem-per-gpu=4G", "srun ./x"))["gpus"]

    first = told.split("\nOr ")[0].split("\n")
    kept = [f"#SBATCH {line}" for line in left]
    assert first[1:] == [line for line in kept if line not in {f"#SBATCH {old}" for old in lines}] or set(
        first[1:]
    ) <= set(kept), told


@pytest.mark.parametrize(
    ("options", "launcher", "told"),
    [
        ("#SBATCH --nodes=1 --gpus-per-node=8", "torchrun --nproc_per_node=8 --nnodes=1 t.py",
         "1 node with 4 GPUs each then; change `--nproc_per_node=8` to 4."),
        ("#SBATCH --nodes=4 --gpus-per-node=2", "torchrun --nproc_per_node 2 --nnodes 4 t.py",
         "2 nodes with 2 GPUs each then; change `--nnodes 4` to 2."),
        ("#SBATCH --nodes=2 --gpus-per-node=8", "accelerate launch --num_processes=16 t.py",
         "1 node with 4 GPUs each then; change `--num_processes=16` to 4."),
    ],
)  # fmt: skip
async def test_what_a_launcher_is_told_is_told_with_the_cut(options: str, launcher: str, told: str):
    assert f"Note: the job has {told}" in (await remedies(options, launcher))["gpus"]


async def test_a_launcher_that_counts_for_itself_is_left_alone():
    assert "Note" not in (await remedies("#SBATCH --gpus=8", "torchrun --nproc_per_node=$N --nnodes=1 t.py"))["gpus"]
