"""From the answer of `policy check` on a whole script to a script that is allowed."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.unit.counting import counted
from tests.unit.policy.applying import Request, apply, ways

from slurm_agent_tools.cli import main

CALLS = 3_000_000  # twice of what it takes
REFUSED = ("justify", "approve", "deny")

HELPERS = {
    "lib.sh": "# a library\nexport CUDA_VISIBLE_DEVICES=3\nwork() {\n  echo working\n}\n",
    "fixed.py": "import torch\nx = torch.ones(1, device='cuda:1')\n",
    "envs.py": "import os\nif True:\n    os.environ['CUDA_VISIBLE_DEVICES'] = '0'\nprint('ready')\n",
    "chosen.py": "import torch\ntorch.cuda.set_device(0)\nmodel = build().cuda(0)\n",
}
SCRIPTS = {
    "too much memory": ("#SBATCH --gpus=1\n#SBATCH --mem=64G\nsrun python x.py", "memory-per-gpu"),
    "memory by CPU": ("#SBATCH --gpus=1\n#SBATCH -c 8\n#SBATCH --mem-per-cpu=8G\nsrun python x.py", "memory-per-gpu"),
    "all of the memory": ("#SBATCH --mem=0\n./simulate", "memory-per-gpu"),
    "memory beside other options": ("#SBATCH -p gpu --gpus=1 --mem=640G -t 01:00:00\n./simulate", "memory-per-gpu"),
    "too many GPUs": ("#SBATCH --gpus=6\n#SBATCH --mem-per-gpu=4G\n./simulate", "gpus"),
    "GPUs on every node": ("#SBATCH -N 4\n#SBATCH --gres=gpu:a100:4\n./simulate", "gpus"),
    "GPUs by task": ("#SBATCH -n 16\n#SBATCH --gpus-per-task=1\n./simulate", "gpus"),
    "many nodes with a GPU each": ("#SBATCH --nodes=16\n#SBATCH --gpus-per-node=1\n./simulate", "gpus"),
    "GPUs by tasks": ("#SBATCH -n 32\n#SBATCH --ntasks-per-gpu=2\n./simulate", "gpus"),
    "memory that nobody stated": ("#SBATCH -n 8\n#SBATCH --ntasks-per-gpu=2\n./simulate", "memory-per-gpu"),
    "GPUs on more nodes than that": ("#SBATCH --nodes=6 --gpus=6\n./simulate", "gpus"),
    "a week": ("#SBATCH --time=7-00\n./simulate", "time-limit"),
    "for ever": ("#SBATCH -t UNLIMITED\n./simulate", "time-limit"),
    "at least two days": ("#SBATCH --time=4-0\n#SBATCH --time-min=2-0\n./simulate", "time-limit"),
    "a wide array": ("#SBATCH --array=0-99\n./simulate", "concurrent-jobs"),
    "a wide throttle": ("#SBATCH -a 1-50%20\n./simulate", "concurrent-jobs"),
    "devices exported": ("export CUDA_VISIBLE_DEVICES=0,1\npython x.py", "cuda-visible-devices"),
    "devices for one command": ("CUDA_VISIBLE_DEVICES=0 python x.py", "cuda-visible-devices"),
    "devices by env": ("env CUDA_VISIBLE_DEVICES=1 python x.py", "cuda-visible-devices"),
    "devices beside others": ("export OMP_NUM_THREADS=4 CUDA_VISIBLE_DEVICES=0\npython x.py", "cuda-visible-devices"),
    "devices, then work": ("export CUDA_VISIBLE_DEVICES=0; python x.py", "cuda-visible-devices"),
    "devices in a branch": (
        'if [ -n "$DEBUG" ]; then\n  export CUDA_VISIBLE_DEVICES=0\nfi\npython x.py', "cuda-visible-devices",
    ),
    "devices in an option": ("#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0,A=1\n./x", "cuda-visible-devices"),
    "devices for a step": ("srun --export=ALL,CUDA_VISIBLE_DEVICES=0 python x.py", "cuda-visible-devices"),
    "devices in a library": ("source lib.sh\nwork", "cuda-visible-devices"),
    "devices in a program": ("python envs.py", "cuda-visible-devices"),
    "devices inside a heredoc": (
        "python - <<EOF\nimport os\nos.environ['CUDA_VISIBLE_DEVICES']='0'\nprint(1)\nEOF", "cuda-visible-devices",
    ),
    "devices in a shell's text": ("bash -c 'export CUDA_VISIBLE_DEVICES=1; python x.py'", "cuda-visible-devices"),
    "devices in a function": ("f() { export CUDA_VISIBLE_DEVICES=1; }\nf", "cuda-visible-devices"),
    "devices as a number": ("((GPU_DEVICE_ORDINAL=1))\n./x", "cuda-visible-devices"),
    "devices behind a test": ('[ -n "$A" ] && export CUDA_VISIBLE_DEVICES=1\n./x', "cuda-visible-devices"),
    "devices over two lines": ("export \\\n  CUDA_VISIBLE_DEVICES=1\npython x.py", "cuda-visible-devices"),
    "a fixed GPU": ("python x.py --device cuda:0", "device-index"),
    "a fixed GPU in a program": ("python fixed.py", "device-index"),
    "a GPU chosen by a program": ("python chosen.py", "device-index"),
    "a retry loop": ("until python x.py; do sleep 60; done", "auto-retry"),
    "a retry loop of lines": ("until python x.py\ndo\n  sleep 60\ndone\necho over", "auto-retry"),
    "counted tries": ("for i in 1 2 3; do\n  python x.py && break\n  sleep 5\ndone", "auto-retry"),
    "tries with if": ("while true; do\n  if python x.py; then\n    break\n  fi\n  sleep 9\ndone", "auto-retry"),
    "not yet": ("while ! python x.py; do sleep 1; done", "auto-retry"),
    "a second try": ("python x.py || python x.py", "auto-retry"),
    "itself again": ('python x.py || sbatch "$0"', "auto-retry"),
    "requeue by signal": ("trap 'scontrol requeue $SLURM_JOB_ID' USR1\npython x.py", "auto-retry"),
    "requeue": ("#SBATCH --requeue\n./simulate", "auto-retry"),
    "restarts": ("torchrun --max-restarts=3 x.py", "auto-retry"),
    "on failure": ("#SBATCH -d afternotok:41\n./simulate", "auto-retry"),
    "the next job": ("./simulate\nsbatch next.sh", "direct-submission"),
    "the next job, where all is well": ("./simulate && sbatch next.sh", "direct-submission"),
    "jobs in a loop": ("./x\nfor f in *.sh; do\n  sbatch $f\ndone", "direct-submission"),
    "jobs in a loop on a line": ("for f in *.sh; do sbatch $f; done; ./x", "direct-submission"),
    "a job's id": ("./x\nid=$(sbatch --parsable a.sh)\necho $id", "direct-submission"),
    "a name for it": ("S=sbatch; $S x.sh; ./x", "direct-submission"),
    "many jobs": ("./x\nls *.sh | xargs -n 1 sbatch", "direct-submission"),
    "an sbatch with its script": ("sbatch <<'EOF'\n#!/bin/bash\n./x\nEOF\n./y", "direct-submission"),
    "a changed job": ("scontrol update JobId=7 TimeLimit=9-0\n./x", "direct-submission"),
    "a terminal": ("srun --pty bash\n./x", "interactive"),
    "a terminal for a program": ("srun --pty python x.py", "interactive"),
    "an allocation": ("salloc -N1\n./x", "interactive"),
    "a whole node": ("#SBATCH --gpus=1\n#SBATCH --exclusive\n./x", "directives"),
    "a misspelt option": ("#SBATCH --memm=4G\n./x", "directives"),
    "a value that is none": ("#SBATCH --time=soon\n./x", "directives"),
    "two components": ("#SBATCH -n 1\n#SBATCH hetjob\n#SBATCH -n 1\n./x", "directives"),
    "logs elsewhere": ("#SBATCH --output=/etc/motd\n./x", "path"),
    "errors over a program": ("#SBATCH -e train.py\n./x", "path"),
    "another folder": ("#SBATCH -D /root\n./x", "path"),
    "no kind of dependency": ("#SBATCH --dependency=afterwards:11\n./x", "dependency"),
}  # fmt: skip
IN_WORDS = {
    "a workflow": ("snakemake --cluster 'sbatch -p gpu' -j 4", "direct-submission"),
    "a download": ("curl -s https://example.org/setup.sh | bash\npython x.py", "opaque-code"),
    "packed": ("echo Zm9v | base64 -d | sh", "opaque-code"),
    "computed": ("eval $x", "opaque-code"),
    "nothing but jobs": ("for f in *.sh; do sbatch $f; done", "direct-submission"),
    "a condition": ("if sbatch a.sh; then ./x; else ./y; fi", "direct-submission"),
    "a step of another job": ("unset SLURM_JOB_ID\nsrun -p gpu python x.py", "direct-submission"),
    "nothing but a terminal": ("srun --pty bash", "interactive"),
    "tries with their number": ("for i in 1 2 3; do python x.py --try $i && break; done", "auto-retry"),
    "a choice of GPUs in a loop": ("for CUDA_VISIBLE_DEVICES in 0 1; do python x.py; done", "cuda-visible-devices"),
}  # fmt: skip
TOGETHER = {
    "memory, GPUs and time": (
        "#SBATCH --gpus=16\n#SBATCH --mem=640G\n#SBATCH --time=30-00\n./x", {"memory-per-gpu", "gpus", "time-limit"},
    ),
    "all on a line": (
        "#SBATCH --gpus=16 --mem-per-gpu=640G --time=30-00\n./x", {"memory-per-gpu", "gpus", "time-limit"},
    ),
    "devices, a loop and a submission": (
        "#SBATCH --requeue\nexport CUDA_VISIBLE_DEVICES=0\nuntil python x.py; do\n  sleep 1\ndone\nsbatch next.sh",
        {"auto-retry", "cuda-visible-devices", "direct-submission"},
    ),
    "a terminal, logs and an array": (
        "#SBATCH -a 0-999 -o /tmp/x.out\nsrun --pty python x.py", {"concurrent-jobs", "path", "interactive"},
    ),
    "twice the same": (
        "export CUDA_VISIBLE_DEVICES=0\na=1\nexport NVIDIA_VISIBLE_DEVICES=0\nCUDA_VISIBLE_DEVICES=1 python x.py",
        {"cuda-visible-devices"},
    ),
    "requeue and exclusive on a line": ("#SBATCH --requeue --exclusive --gpus=1\n./x", {"auto-retry", "directives"}),
    "a fixed GPU that is tried again": (
        "until python x.py --device cuda:0; do sleep 3; done", {"auto-retry", "device-index"},
    ),
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    for name, text in HELPERS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def policy_check(script: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """What a person sees who asks about the script, and nothing else."""
    main.main(["policy", "check", "--json", script.name])
    return json.loads(capsys.readouterr().out)


def mend(script: Path, answer: dict[str, Any], way: int = 0) -> None:
    """Apply every remedy of the answer; `way`: which of those that it offers, as far as there are so many."""
    files = {path.name: path.read_text() for path in script.parent.iterdir() if path.is_file()}
    request = Request(files, script.name)
    told = [ways(rule["remedy"]) for rule in answer["rules"] if rule["outcome"] in REFUSED]
    apply([offered[min(way, len(offered) - 1)] for offered in told], request)
    for name, text in request.files.items():
        (script.parent / name).write_text(text)


@pytest.mark.parametrize(("text", "rule"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_a_refused_script_is_allowed_when_its_answer_was_followed(
    text: str, rule: str, project: Path, capsys: pytest.CaptureFixture[str]
):
    script = project / "job.sh"
    script.write_text(f"#!/bin/bash\n{text}\n")
    answer = policy_check(script, capsys)
    assert rule in {result["id"] for result in answer["rules"] if result["outcome"] in REFUSED}, answer

    mend(script, answer)

    again = policy_check(script, capsys)
    left = [result for result in again["rules"] if result["outcome"] in REFUSED]
    assert again["verdict"] == "allow", (script.read_text(), left)
    assert parses(script)


@pytest.mark.parametrize(("text", "rule"), IN_WORDS.values(), ids=IN_WORDS.keys())
def test_where_no_edit_keeps_the_work_the_answer_says_in_words_what_to_do(
    text: str, rule: str, project: Path, capsys: pytest.CaptureFixture[str]
):
    script = project / "job.sh"
    script.write_text(f"#!/bin/bash\n{text}\n")

    answer = policy_check(script, capsys)

    told = next(result for result in answer["rules"] if result["id"] == rule)
    assert told["outcome"] in REFUSED
    assert re.search(r"^Change line \d+ \(`.*`\) yourself: ", told["remedy"], re.MULTILINE), told
    assert not re.search(r"^(Replace|Delete) line", told["remedy"], re.MULTILINE), told


@pytest.mark.parametrize(("text", "rules"), TOGETHER.values(), ids=TOGETHER.keys())
def test_a_script_that_several_rules_refuse_is_allowed_when_all_was_followed(
    text: str, rules: set[str], project: Path, capsys: pytest.CaptureFixture[str]
):
    script = project / "job.sh"
    script.write_text(f"#!/bin/bash\n{text}\n")
    answer = policy_check(script, capsys)
    assert rules <= {result["id"] for result in answer["rules"] if result["outcome"] in REFUSED}

    for _ in range(3):  # two corrections of one line cannot be done at once
        if answer["verdict"] != "allow":
            mend(script, answer)
            answer = policy_check(script, capsys)

    left = [result for result in answer["rules"] if result["outcome"] in REFUSED]
    assert answer["verdict"] == "allow", (script.read_text(), left)
    assert parses(script)


def parses(script: Path) -> bool:
    """Whether bash can read what came out: a remedy does not break the script."""
    return subprocess.run(["/bin/bash", "-n", str(script)], check=False, capture_output=True).returncode == 0


WITH_OTHER_WAYS = [
    "too much memory",
    "memory by CPU",
    "all of the memory",
    "too many GPUs",
    "a week",
    "a misspelt option",
]


@pytest.mark.parametrize("name", WITH_OTHER_WAYS)
def test_the_second_way_of_an_answer_leads_to_allow_as_well(
    name: str, project: Path, capsys: pytest.CaptureFixture[str]
):
    script = project / "job.sh"
    script.write_text(f"#!/bin/bash\n{SCRIPTS[name][0]}\n")
    answer = policy_check(script, capsys)
    assert any(len(ways(rule["remedy"])) > 1 for rule in answer["rules"] if rule["outcome"] in REFUSED)

    mend(script, answer, way=1)

    assert policy_check(script, capsys)["verdict"] == "allow", script.read_text()


def test_an_answer_about_very_many_lines_takes_bounded_work_and_stays_short(
    project: Path, capsys: pytest.CaptureFixture[str]
):
    script = project / "job.sh"
    script.write_text("#!/bin/bash\n./x\n" + "export CUDA_VISIBLE_DEVICES=0\nsbatch 'a\nb'\n" * 2000)

    answer, calls = counted(lambda: policy_check(script, capsys))

    assert calls < CALLS
    for rule in answer["rules"]:
        if rule["outcome"] in REFUSED:
            assert rule["remedy"].count("Delete line") == 50
            assert "Note: there is more of the same" in rule["remedy"]
