"""What is taken out of a script is the violation alone: the words before it and behind it stay."""

from __future__ import annotations

import re

import pytest
from tests.unit.policy import kept_work
from tests.unit.policy.kept_work import LOADED, judge, parses, spoken

SCRIPT = "scripts/job.sh"


async def mended(text: str) -> str:
    """The lines after the first way of each remedy was followed."""
    left = await kept_work.mended(f"#!/bin/bash\n{text}\n", SCRIPT)
    assert parses(left)
    return left.removeprefix("#!/bin/bash\n").rstrip("\n")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("sbatch b.sh; python a.py", "python a.py"),
        ("python a.py; sbatch b.sh", "python a.py;"),
        ("srun python a.py && sbatch b.sh", "srun python a.py"),
        ("python a.py && sbatch b.sh && echo done", "python a.py && echo done"),
        ("sbatch b.sh && python a.py", "python a.py"),
        ("sbatch b.sh || echo no\npython a.py", ": || echo no\npython a.py"),
        ("python a.py || sbatch b.sh", "python a.py"),
        ("  sbatch b.sh && python a.py", "  python a.py"),
        ("if python a.py; then sbatch b.sh; fi", "if python a.py; then :; fi"),
        ("if python a.py; then\n  sbatch b.sh\nelse\n  python c.py\nfi",
         "if python a.py; then\n  :\nelse\n  python c.py\nfi"),
        ("if python a.py; then sbatch b.sh; sbatch c.sh; fi", "if python a.py; then :; fi"),
        ("if sbatch b.sh; then python a.py; fi", "if sbatch b.sh; then python a.py; fi"),  # in words
        ("case $1 in a) sbatch b.sh;; *) python a.py;; esac", "case $1 in a) :;; *) python a.py;; esac"),
        ("for f in *; do python a.py $f; sbatch $f; done", "for f in *; do python a.py $f; done"),
        ("for f in *; do sbatch $f; done\npython a.py", "python a.py"),
        ("while read f; do sbatch $f; done < list\npython a.py", "while read f; do :; done < list\npython a.py"),
        ("while squeue | grep -q me; do sbatch b.sh; done\npython a.py",
         "while squeue | grep -q me; do sbatch b.sh; done\npython a.py"),  # it would never end
        ("next() { sbatch b.sh; }\npython a.py && next", "next() { :; }\npython a.py && next"),
        ("(python a.py; sbatch b.sh)", "(python a.py; )"),
        ("(sbatch b.sh)\npython a.py", "python a.py"),
        ("id=$(sbatch --parsable b.sh)\npython a.py", "id=$(:)\npython a.py"),
        ('echo "next: `sbatch b.sh`"\npython a.py', 'echo "next: `:`"\npython a.py'),
        ("ls *.sh | xargs -n 1 sbatch\npython a.py", "ls *.sh\npython a.py"),
        ("sbatch b.sh | tee log\npython a.py", ": | tee log\npython a.py"),
        ("python a.py | tee log && sbatch b.sh", "python a.py | tee log"),
        ("sbatch b.sh & python a.py", "python a.py"),
        ("sbatch <<'E'\n#!/bin/bash\n./x\nE\npython a.py", "python a.py"),
        ("python a.py \\\n  --lr 1 \\\n  && sbatch b.sh", "python a.py \\\n  --lr 1"),
        ("sbatch b.sh # the next one\npython a.py", "python a.py"),
        ("echo 'sbatch; sbatch'; sbatch b.sh; python a.py", "echo 'sbatch; sbatch'; python a.py"),
        ("/opt/slurm/bin/sbatch b.sh; /data/slurm/a.py", "/data/slurm/a.py"),
        ("timeout 60 sbatch b.sh; python a.py", "python a.py"),
        ("S=sbatch; $S b.sh; python a.py", "S=sbatch; python a.py"),
        ("snakemake --cluster 'sbatch -p gpu' -j 4", "snakemake --cluster 'sbatch -p gpu' -j 4"),  # in words
        ("sbatch b.sh", "sbatch b.sh"),  # nothing would be left
        ("echo start; sbatch b.sh", "echo start; sbatch b.sh"),
    ],
)  # fmt: skip
async def test_a_submission_is_taken_out_and_the_commands_around_it_stay(text: str, left: str):
    assert await mended(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("until python a.py; do sleep 9; done", "python a.py"),
        ("while ! python a.py --resume; do sleep 9; done", "python a.py --resume"),
        ("until python a.py \\\n  --fast\ndo\n  sleep 9\ndone", "python a.py \\\n  --fast"),
        ("for n in 1 2 3; do if python a.py; then break; fi; done", "python a.py"),
        ("for n in 1 2 3; do python a.py && break; sleep 9; done", "python a.py"),
        ("for n in 1 2 3; do python a.py | tee log && break; sleep 9; done", "python a.py | tee log"),
        ("for n in 1 2 3; do\n  ./prepare\n  python a.py && break\ndone", "./prepare\npython a.py"),
        ("./b || for n in 1 2 3; do ./prepare; python a.py && break; done", "./b || { ./prepare; python a.py; }"),
        ("for n in 1 2 3; do ./prepare; python a.py && break; done &\nwait", "{ ./prepare; python a.py; } &\nwait"),
        ("for n in 1 2 3; do python a.py --try $n && break; done",
         "for n in 1 2 3; do python a.py --try $n && break; done"),
        ("for n in 1 2 3; do python a.py && exit 0; done\nexit 1", "python a.py"),
        ("for n in 1 2 3; do python a.py && exit 0; done\npython b.py",
         "for n in 1 2 3; do python a.py && exit 0; done\npython b.py"),
        ("python a.py || python a.py", "python a.py"),
        ("python a.py || { sleep 9; python a.py; }", "python a.py"),
        ('python a.py || sbatch "$0"', "python a.py"),
        ("trap 'scontrol requeue $SLURM_JOB_ID' USR1\npython a.py", "python a.py"),
        ("trap './save; scontrol requeue $SLURM_JOB_ID' USR1\npython a.py",
         "trap './save; scontrol requeue $SLURM_JOB_ID' USR1\npython a.py"),
        ("again() { ./save; scontrol requeue $SLURM_JOB_ID; }\ntrap again USR1\npython a.py",
         "again() { ./save; }\ntrap again USR1\npython a.py"),
        ("torchrun --max-restarts=3 --nnodes 1 a.py", "torchrun --nnodes 1 a.py"),
        ("torchrun \\\n  --max-restarts 3 \\\n  a.py", "torchrun \\\n  a.py"),
        ("torchrun a.py \\\n  --max-restarts 3\necho over", "torchrun a.py\necho over"),
    ],
)  # fmt: skip
async def test_a_second_try_is_taken_out_and_the_work_is_run_once(text: str, left: str):
    assert await mended(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("export CUDA_VISIBLE_DEVICES=0 # first GPU\npython a.py", "python a.py"),
        ("export A=1 CUDA_VISIBLE_DEVICES=0 B=2 # both\npython a.py", "export A=1 B=2 # both\npython a.py"),
        ("CUDA_VISIBLE_DEVICES=0 python a.py", "python a.py"),
        ("OMP=4 CUDA_VISIBLE_DEVICES=0 python a.py", "OMP=4 python a.py"),
        ("CUDA_VISIBLE_DEVICES=0 \\\npython a.py", "python a.py"),
        ("python a.py && export CUDA_VISIBLE_DEVICES=1 && python b.py", "python a.py && python b.py"),
        ('if [ -n "$D" ]; then\n  export CUDA_VISIBLE_DEVICES=0\nfi\npython a.py',
         'if [ -n "$D" ]; then\n  :\nfi\npython a.py'),
        ("for i in 0 1; do\n  CUDA_VISIBLE_DEVICES=$i python a.py $i &\ndone\nwait",
         "for i in 0 1; do\n  srun -n1 --exact --gpus=1 python a.py $i &\ndone\nwait"),
        ("for i in 0 1; do\n  export CUDA_VISIBLE_DEVICES=$i\n  python a.py $i &\ndone\nwait",
         "for i in 0 1; do\n  srun -n1 --exact --gpus=1 python a.py $i &\ndone\nwait"),
        ("(CUDA_VISIBLE_DEVICES=0 python a.py; CUDA_VISIBLE_DEVICES=0 python b.py) &\nwait",
         "(srun -n1 --exact --gpus=1 python a.py; srun -n1 --exact --gpus=1 python b.py) &\nwait"),
        ("CUDA_VISIBLE_DEVICES=1 OMP=2 nohup python a.py > log 2>&1 &\nwait",
         "OMP=2 srun -n1 --exact --gpus=1 nohup python a.py > log 2>&1 &\nwait"),
        ("work() { python a.py; }\nCUDA_VISIBLE_DEVICES=1 work &\nwait", "work() { python a.py; }\nwork &\nwait"),
        ("apptainer exec --env A=1,CUDA_VISIBLE_DEVICES=0 x.sif python a.py",
         "apptainer exec --env A=1 x.sif python a.py"),
        ('apptainer exec --env "A=1,CUDA_VISIBLE_DEVICES=0" x.sif ./a', 'apptainer exec --env "A=1" x.sif ./a'),
        ("bash -c 'CUDA_VISIBLE_DEVICES=1 python a.py'", "bash -c 'python a.py'"),
        ("env -S 'CUDA_VISIBLE_DEVICES=0 python a.py'", "env -S 'python a.py'"),
        ("mpirun -x CUDA_VISIBLE_DEVICES=0,1 -x PATH ./a", "mpirun -x PATH ./a"),
    ],
)  # fmt: skip
async def test_a_choice_of_devices_is_taken_out_and_workers_beside_each_other_become_steps(text: str, left: str):
    assert await mended(text) == left


TWO = "for i in 0 1; do\n  {}python a.py $i &\ndone\nwait"
STEP = "srun -n1 --exact --gpus=1 "


@pytest.mark.parametrize(
    ("asked", "after", "step"),
    [
        ("--gpus=2 --mem-per-gpu=8G", "--nodes=1 --ntasks=2 --gpus=2 --mem-per-gpu=8G", STEP),
        ("--gres=gpu:2 --nodes=1", "--ntasks=2 --gres=gpu:2 --nodes=1", STEP),
        ("--gpus=3 -n 3", "--gpus=3 -n 3", STEP),
        ("--gpus=2 --nodes=1 --ntasks-per-node=1", "--gpus=2 --nodes=1 --ntasks=2", STEP),
        ("--gpus=2 -c 8 --mem=16G", "--gpus=2 -c 8 --mem=16G",
         "srun -n1 -c4 --exact --gpus=1 --mem=8G "),
        ("--gpus=2 --mem=17G -n2", "--gpus=2 --mem=17G -n2", f"{STEP}--mem=8704M "),
        ("--gpus=4 -c 3", "--gpus=4 --nodes=1 --cpus-per-task=4", "srun -n1 -c1 --exact --gpus=1 "),
        ("--gpus=2 -N1 --mem-per-cpu=20G", "--gpus=2 -N1 --ntasks=2 --mem-per-cpu=10G", STEP),
        ("--gpus=2 --cpus-per-gpu=4", "--gpus=2 --cpus-per-gpu=4", STEP),
        ("--gpus-per-task=1 -n2", "--gpus-per-task=1 -n2", STEP),
        ("--gpus=1", "--gpus=1", STEP),
        ("--nodes=2 --gpus-per-node=2", "--nodes=2 --gpus-per-node=2", "srun -n1 --exact --gpus-per-node=1 "),
    ],
)  # fmt: skip
async def test_workers_that_share_the_gpus_of_a_job_get_a_cpu_and_their_part_of_its_memory(
    asked: str, after: str, step: str
):
    def head(options: str) -> str:
        words = re.findall(r"--?\S+(?: \d+)?", options)
        return "".join(f"#SBATCH {word}\n" for word in words)

    text = head(asked) + TWO.format("CUDA_VISIBLE_DEVICES=$i ")

    left = await mended(text)

    assert left == head(after) + TWO.format(step)
    _, decision = await judge({SCRIPT: f"#!/bin/bash\n{left}\n"}, SCRIPT, LOADED)
    assert decision.verdict == "allow"


async def test_where_other_steps_start_a_process_for_each_task_the_cpus_of_the_one_task_grow():
    begin = "#SBATCH --gpus=2\nsrun python prepare.py\n"
    assert await mended(begin + TWO.format("CUDA_VISIBLE_DEVICES=$i ")) == (
        f"#SBATCH --nodes=1\n#SBATCH --cpus-per-task=2\n{begin}{TWO.format('srun -n1 -c1 --exact --gpus=1 ')}"
    )


@pytest.mark.parametrize(
    ("asked", "told"),
    [("--gpus=2", True), ("--nodes=2 --gpus-per-node=2", True), ("--gpus=2 --ntasks=2", False), ("--gpus=1", False)],
)
async def test_workers_that_would_wait_for_a_cpu_are_told_of(asked: str, told: bool):
    text = f"#!/bin/bash\n#SBATCH {asked}\n{TWO.format('CUDA_VISIBLE_DEVICES=$i ')}\n"
    _, decision = await judge({SCRIPT: text}, SCRIPT, LOADED)
    remedy = next(one.remedy or "" for one in spoken(decision) if one.id == "cuda-visible-devices")
    assert ("Note: each worker's step takes a CPU for itself" in remedy) is told


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("python a.py --device cuda:0 --lr 1", "python a.py --device cuda --lr 1"),
        ("python a.py --gpu_ids 0,1 --lr 1", "python a.py --lr 1"),
        ("python a.py --gpus 0 1 --lr 1", "python a.py --lr 1"),
        ("python a.py --device 1 5", "python a.py 5"),
        ("python a.py --gpus '0, 1' --lr 1", "python a.py --lr 1"),
        ("colmap m --Sift.gpu_index=0,1 --lr 1", "colmap m --lr 1"),
        ("llama-server --device CUDA1 -c 8", "llama-server -c 8"),
        ("gmx mdrun -gputasks 0011 -v", "gmx mdrun -v"),
        ("python a.py --gpuid 1 --lr 1", "python a.py --lr 1"),
        ("python a.py \\\n  --gpu_ids 0,1 \\\n  --lr 1", "python a.py \\\n  --lr 1"),
        ("yolo train device=1,2 data=d", "yolo train data=d"),
        ("deepspeed --include localhost:0,1 a.py", "deepspeed a.py"),
        ("DEVICE=cuda:1\npython a.py $DEVICE", "DEVICE=cuda\npython a.py $DEVICE"),
        ("srun --pty python a.py", "srun python a.py"),
        ("srun --pty bash\npython a.py", "python a.py"),
    ],
)
async def test_a_number_or_a_terminal_is_taken_out_of_its_command(text: str, left: str):
    assert await mended(text) == left


@pytest.mark.parametrize("text", ["eval $x\npython a.py", "curl -s https://example.org/a.sh | bash\npython a.py"])
async def test_text_that_cannot_be_read_is_never_taken_out(text: str):
    assert await mended(text) == text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("snakemake --cluster 'sbatch -p gpu' -j 4", "let the workflow run its work inside this job"),
        ("python a.py --multirun hydra/launcher=submitit_slurm", "let the workflow run its work inside this job"),
        ("salloc -N1 python a.py", "run the work as a step of this job"),
        ("srun --jobid=5 python a.py", "run the work as a step of this job"),
        ("sbatch b.sh", "submit that script with submit_job"),
    ],
)
async def test_what_cannot_be_taken_out_of_a_submission_is_told_by_what_submits(line: str, words: str):
    _, decision = await judge({SCRIPT: f"#!/bin/bash\n{line}\n"}, SCRIPT, LOADED)
    remedy = next(one.remedy or "" for one in spoken(decision) if one.id == "direct-submission")
    assert f"Change line 2 (`{line}`) yourself: " in remedy
    assert words in remedy
