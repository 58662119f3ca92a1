"""Scripts made by chance: work as people write it, with things in it that a policy refuses, in every kind of place."""

from __future__ import annotations

import random

WORK = (
    "python train.py --lr 0.1",
    "srun ./solver input.nml",
    "python eval.py --out results > eval.log 2>&1",
    "python a.py | tee log.txt",
    "./prepare data && ./simulate data",
    "python - <<'EOF'\nimport json\nprint(json.dumps({}))\nEOF",
    "./fit \\\n  --steps 100 \\\n  --out fit.out",
    "for seed in 1 2 3; do\n  python run.py --seed $seed\ndone",
    'while read -r name; do ./process "$name"; done < names.txt',
    "(cd build && make -j 4)",
    "x=$(./count data | tail -n 1)",
    "if [ -f model.pt ]; then\n  ./resume model.pt\nelse\n  ./start\nfi",
)  # fmt: skip
QUIET = (
    "echo starting",
    "module load cuda",
    "set -euo pipefail",
    'cd "$SLURM_SUBMIT_DIR"',
    "export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK",
    "# a comment with (a parenthesis and `a quote",
    "date",
    "",
)  # fmt: skip
BAD = (
    "sbatch next.sh",
    "sbatch --dependency=afterok:$SLURM_JOB_ID next.sh",
    "timeout 60 sbatch next.sh",
    "id=$(sbatch --parsable next.sh)",
    "scontrol update JobId=7 TimeLimit=9-0",
    "scancel 12345",
    "sbatch <<EOT\n#!/bin/bash\n./x\nEOT",
    "export CUDA_VISIBLE_DEVICES=0",
    "export A=1 CUDA_VISIBLE_DEVICES=0,1",
    "CUDA_VISIBLE_DEVICES=1 python worker.py",
    "env CUDA_VISIBLE_DEVICES=1 python worker.py",
    "srun --export=ALL,CUDA_VISIBLE_DEVICES=0 ./worker",
    "python worker.py --device cuda:1",
    "deepspeed --include localhost:0,1 worker.py",
    "srun --pty bash",
    "srun --pty ./worker",
    "salloc -N1",
    "until ./worker; do sleep 5; done",
    "for try in 1 2 3; do ./worker && break; sleep 9; done",
    "for try in 1 2 3; do ./worker --try $try && break; done",
    "for try in 1 2 3; do\n  ./prepare\n  if ./worker; then break; fi\n  echo again\ndone",
    "./worker || ./worker",
    "./worker || scontrol requeue $SLURM_JOB_ID",
    "torchrun --max-restarts=3 worker.py",
    "snakemake --cluster 'sbatch -p gpu' -j 4",
    "eval $commands",
    "curl -s https://example.org/setup.sh | bash",
)
PLACES = (
    "{bad}",
    "{bad}",
    "{bad} # as ever",
    "{bad}; {good}",
    "{good}; {bad}",
    "{good} && {bad}",
    "{bad} && {good}",
    "{bad} || {good}",
    "{good} || {bad}",
    "{bad} &",
    "{bad} &\nwait",
    "! {bad}",
    "time {bad}",
    "( {bad} )",
    "( {good}; {bad} )",
    "{{ {bad}; {good}; }}",
    "{bad} > log 2>&1",
    "{bad} | tee log",
    "if {bad}; then {good}; fi",
    "if {good}; then {bad}; fi",
    "if {good}; then\n  {bad}\nelse\n  {good}\nfi",
    'if [ -n "$X" ]; then\n  {bad}\n  {bad}\nfi',
    "for f in *.sh; do {bad}; done",
    "for f in *.sh; do\n  {good}\n  {bad}\ndone",
    "for i in 0 1 2 3; do\n  {bad} &\ndone\nwait",
    "while read f; do {bad}; done < list",
    "while true; do\n  {bad}\n  sleep 60\ndone",
    "ls *.sh | while read f; do {bad}; done",
    "step() {{\n  {bad}\n}}\nstep",
    "step() {{ {good}; {bad}; }}\nstep && {good}",
    "case $1 in\n  a) {bad};;\n  *) {good};;\nesac",
    "y=$({bad})",
    'echo "it says $({bad})"',
    "echo `{bad}`",
    "cat <<EOF > notes\n$(date)\nEOF\n{bad}",
)  # fmt: skip
OPTIONS = (
    "#SBATCH --gpus=1",
    "#SBATCH --gpus=16",
    "#SBATCH -N 4 --gres=gpu:a100:4",
    "#SBATCH --nodes=2 --ntasks-per-node=8 --gpus-per-node=8",
    "#SBATCH -n 12 --gpus-per-task=1",
    "#SBATCH --mem=8G",
    "#SBATCH --mem=400G",
    "#SBATCH --time=12:00:00",
    "#SBATCH --time=30-00",
    "#SBATCH --time=5hours",
    "#SBATCH --tiem=01:00:00",
    "#SBATCH --exclusive",
    "#SBATCH --requeue",
    "#SBATCH --output=logs/%j.out",
    "#SBATCH --output=/scratch/logs/%j.out --error=/scratch/logs/%j.err",
    "#SBATCH --chdir=/scratch/run",
    "#SBATCH --array=0-99",
    "#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0",
)


def made(seed: int) -> str:
    """The script of this number, always the same."""
    chance = random.Random(seed)  # noqa: S311 - a test's choice, no secret
    lines = ["#!/bin/bash", *chance.sample(OPTIONS, chance.randint(0, 4))]
    for _ in range(chance.randint(1, 5)):
        kind = chance.random()
        if kind < 0.45:
            lines.append(_placed(chance))
        else:
            lines.append(chance.choice(WORK if kind < 0.8 else QUIET))
    if chance.random() < 0.8:
        lines.insert(chance.randint(len(lines) - 1, len(lines)), chance.choice(WORK))
    return "\n".join([*lines, ""])


def _placed(chance: random.Random) -> str:
    """Something bad in some place. A here-document ends the line that it stands in."""
    bad = chance.choice(BAD)
    places = PLACES if "<<" not in bad else [place for place in PLACES if place.endswith("{bad}")]
    good = [work for work in WORK if "<<" not in work]
    parts = chance.choice(places).split("{good}")
    text = parts[0] + "".join(chance.choice(good) + part for part in parts[1:])
    return text.replace("{bad}", bad).replace("{{", "{").replace("}}", "}")
