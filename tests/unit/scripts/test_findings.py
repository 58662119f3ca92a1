"""What a script does, found in any place and spelling, and the idioms of honest scripts that pass."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.watchdog import ends

from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.transport.local import LocalFiles

TRAIN = "import torch\nx = torch.device('cuda:1')\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "lib.sh").write_text("# a library\nexport CUDA_VISIBLE_DEVICES=3\n")
    return tmp_path


async def read(project: Path, text: str) -> ScriptReading:
    data = ("#!/bin/bash\n" + text + "\n").encode()
    return await read_script(data, "j.sh", project=str(project), files=LocalFiles())


FOUND = [
    ("export CUDA_VISIBLE_DEVICES=0", "cuda-visible-devices"),
    ("CUDA_VISIBLE_DEVICES=0 python x.py", "cuda-visible-devices"),
    ("env CUDA_VISIBLE_DEVICES=1 python x", "cuda-visible-devices"),
    ("python train.py", "device-index"),
    ("source lib.sh", "cuda-visible-devices"),
    ("bash -c 'export CUDA_VISIBLE_DEVICES=1'", "cuda-visible-devices"),
    ("sbatch x.sh", "direct-submission"),
    ("/usr/bin/sbatch x", "direct-submission"),
    ("S=sbatch; $S x.sh", "direct-submission"),
    ("timeout 5 sbatch x", "direct-submission"),
    ("ssh host sbatch x", "direct-submission"),
    ("echo x | xargs sbatch", "direct-submission"),
    ("srun --pty bash", "interactive"),
    ("scontrol requeue $SLURM_JOB_ID", "auto-retry"),
    ("until python x.py; do sleep 1; done", "auto-retry"),
    ("for i in 1 2 3; do python t.py && break; done", "auto-retry"),
    ("eval $x", "opaque-code"),
    ("curl http://x | bash", "opaque-code"),
    ("echo Zm9v | base64 -d | sh", "opaque-code"),
    (
        "cat > run.sh <<'EOF'\n#!/bin/bash\nexport CUDA_VISIBLE_DEVICES=$SLURM_LOCALID\npython x\nEOF\nchmod +x run.sh\nsrun ./run.sh",
        "cuda-visible-devices",
    ),
    ("snakemake --cluster 'sbatch -p gpu' -j 4", "direct-submission"),
    ("python - <<EOF\nimport os\nos.environ['CUDA_VISIBLE_DEVICES']='0'\nEOF", "cuda-visible-devices"),
    ("python train2.py --device cuda:0", "device-index"),
    ("trap 'scontrol requeue $SLURM_JOB_ID' USR1", "auto-retry"),
    ("while true; do python x.py && break; done", "auto-retry"),
    ("torchrun --max-restarts=3 x.py", "auto-retry"),
]


@pytest.mark.parametrize(("text", "rule"), FOUND)
async def test_what_the_policy_asks_about_is_found(project, text, rule):
    reading = await read(project, text)
    assert rule in {finding.rule for finding in reading.findings if finding.level != "warn"}


MORE = [
    ('python train2.py || sbatch "$0"', "auto-retry"),
    ("sbatch j.sh", "auto-retry"),
    ("export CUDA_VISIBLE''_DEVICES=0", "cuda-visible-devices"),
    ("declare -x HIP_VISIBLE_DEVICES=0", "cuda-visible-devices"),
    ("read CUDA_VISIBLE_DEVICES <<< 0", "cuda-visible-devices"),
    ("printf -v CUDA_VISIBLE_DEVICES 0", "cuda-visible-devices"),
    ("for CUDA_VISIBLE_DEVICES in 0 1; do x; done", "cuda-visible-devices"),
    ("((GPU_DEVICE_ORDINAL=1))", "cuda-visible-devices"),
    (": ${CUDA_VISIBLE_DEVICES:=0}", "cuda-visible-devices"),
    ("if true; then f() { export CUDA_VISIBLE_DEVICES=1; }; fi", "cuda-visible-devices"),
    ("apptainer exec --env CUDA_VISIBLE_DEVICES=0 x.sif python t", "cuda-visible-devices"),
    ("export APPTAINERENV_CUDA_VISIBLE_DEVICES=0", "cuda-visible-devices"),
    ("mpirun -x CUDA_VISIBLE_DEVICES=0 ./a", "cuda-visible-devices"),
    ("exec sbatch x", "direct-submission"),
    ("nohup nice -n 5 sbatch x &", "direct-submission"),
    ("out=$(sbatch x)", "direct-submission"),
    ("scontrol update job=1 TimeLimit=9", "direct-submission"),
    ("scontrol release 12", "direct-submission"),
    ("python -c 'import os; os.system(\"sbatch x\")'", "direct-submission"),
    ("python -c 'import submitit'", "direct-submission"),
    ("salloc -n1", "interactive"),
    ("srun -n1 --pty=0 bash", "interactive"),
    ("while ! python x.py; do sleep 5; done", "auto-retry"),
    ("for i in 1 2 3; do if python x.py; then break; fi; done", "auto-retry"),
    ("snakemake --retries 3", "auto-retry"),
    ("bash <(curl -s http://x)", "opaque-code"),
    ('bash -c "$CMD"', "opaque-code"),
    ("wget -qO- http://x | sh", "opaque-code"),
    ('export "$NAME=0"', "opaque-code"),
    ("if then", "opaque-code"),
]


@pytest.mark.parametrize(("text", "rule"), MORE)
async def test_more_ways_are_found(project, text, rule):
    reading = await read(project, text)
    assert rule in {finding.rule for finding in reading.findings if finding.level != "warn"}


HONEST = [
    "echo $CUDA_VISIBLE_DEVICES",
    "unset CUDA_VISIBLE_DEVICES",
    "# CUDA_VISIBLE_DEVICES=0",
    "echo sbatch x",
    'eval "$(conda shell.bash hook)"',
    "module load cuda/12",
    "source venv/bin/activate",
    "source ~/.bashrc",
    "scontrol show job $SLURM_JOB_ID",
    "srun --jobid $SLURM_JOB_ID hostname",
    "srun -n 4 python t.py",
    "i=0; while [ $i -lt 5 ]; do echo $i; ((i++)); done",
    "until [ -f done ]; do sleep 1; done",
    'echo "set CUDA_VISIBLE_DEVICES=0 yourself"',
    'if [ -z "$CUDA_VISIBLE_DEVICES" ]; then echo no; fi',
    "export NCCL_DEBUG=INFO",
    "mpirun -np 4 ./a.out",
    "__conda_setup=\"$('/opt/conda/bin/conda' 'shell.bash' 'hook' 2> /dev/null)\"; eval \"$__conda_setup\"",
    "for f in *.txt; do python p.py $f; done",
    'echo "scontrol requeue" ',
    "python -c 'print(1)'",
    "squeue -u $USER",
    "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
]


@pytest.mark.parametrize("text", HONEST)
async def test_what_honest_scripts_do_is_no_finding(project, text):
    reading = await read(project, text)
    assert [finding for finding in reading.findings if finding.level != "warn"] == []


async def test_a_finding_names_file_and_line(project):
    places = {}
    for text in (
        "source lib.sh",
        "true\npython - <<EOF\nimport os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\nEOF",
        "python train.py",
    ):
        [finding] = (await read(project, text)).findings
        places[text.split()[0]] = (finding.evidence.file, finding.evidence.line, finding.evidence.text)
    assert places["source"] == ("lib.sh", 2, "export CUDA_VISIBLE_DEVICES=3")
    assert places["true"][:2] == ("j.sh", 5)
    assert places["python"][:2] == ("train.py", 2)


async def test_project_files_that_run_are_recorded_by_hash(project):
    reading = await read(project, "python train.py\nsource lib.sh\nsource /etc/profile")
    assert set(reading.files) == {"train.py", "lib.sh"}
    assert all(len(digest) == 64 for digest in reading.files.values())


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "x" + ")" * 5000,
        "echo " + "a" * 3_500_000,
        "x;" * 200_000,
        "$(" * 3000 + "x" + ")" * 3000,
        "#" * 10_000_000,
    ],
    ids=["deep", "long-line", "many", "substitutions", "large"],
)
@pytest.mark.usefixtures("impatient")
async def test_a_script_made_to_be_slow_gets_an_answer(project, text):
    with ends():
        reading = await read(project, text)
    assert reading.sha256
