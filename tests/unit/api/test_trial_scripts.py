"""Scripts that differ in how much they ask for: each reading is the one that it would have been by itself."""

from __future__ import annotations

import pytest
from tests.unit.programs.test_idioms import ALLOWED, REFUSED
from tests.unit.scripts.project import ROOT, MemoryFiles, project
from tests.unit.scripts.test_findings import FOUND

from slurm_agent_tools.api.trial_scripts import TrialScripts
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.scripts import reader

PATH = "scripts/slurm/generated/rates-r1.sh"
ASKED = "#!/bin/bash\n# Stage one\n#SBATCH --job-name=rates\n#SBATCH --mem={}\n#SBATCH --time={}\n#SBATCH --output=l/%x.out\n\n"
LITTLE, MUCH = ASKED.format("1G", "00:10:00"), ASKED.format("20000M", "1-00:00:00")
BODIES = [str(one[0]) if isinstance(one, tuple) else str(one) for one in (*ALLOWED, *REFUSED, *FOUND)][::4]


async def after(first: str, second: str, files: MemoryFiles | None = None) -> tuple[ScriptReading, ScriptReading]:
    """The second script as it is read after the first, and by itself."""
    files, scripts = files or MemoryFiles(), TrialScripts()
    await scripts.read(first.encode(), PATH, project=ROOT, files=files)  # type: ignore[arg-type]
    told = await scripts.read(second.encode(), PATH, project=ROOT, files=files)  # type: ignore[arg-type]
    return told, await reader.read_script(second.encode(), PATH, project=ROOT, files=files)  # type: ignore[arg-type]


@pytest.mark.parametrize("body", BODIES)
async def test_a_script_that_asks_for_more_is_read_as_by_itself(body: str):
    told, alone = await after(LITTLE + body, MUCH + body)
    assert told == alone


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("#SBATCH --chdir=a\nbash x.sh", "#SBATCH --chdir=b\nbash x.sh"),
        ("#SBATCH --chdir\n#SBATCH --mem=1G\nbash x.sh", "#SBATCH --chdir\n#SBATCH --mem=2G\nbash x.sh"),
        ("#SBATCH --export=A=1\ntrue", "#SBATCH --export=CUDA_VISIBLE_DEVICES=1\ntrue"),
        ("cat > x.sh <<E\n#SBATCH --mem=1G\nE\nsbatch x.sh", "cat > x.sh <<E\n#SBATCH --mem=2G\nE\nsbatch x.sh"),
        ("#SBATCH --mem=1G # JUSTIFIED: large\ntrue", "#SBATCH --mem=1G\ntrue"),
        ("#SBATCH --mem=1X\ntrue", "#SBATCH --mem=1G --mem=2X\ntrue"),
        ("#SBATCH --time=1\nbash x.sh", "#SBATCH --time=2 --export=CUDA_VISIBLE_DEVICES=0\nbash x.sh"),
        ("true", "export CUDA_VISIBLE_DEVICES=0"),
    ],
)
async def test_scripts_that_differ_in_more_are_read_each(first: str, second: str):
    files = project(x__sh="true", a___x__sh="sbatch y.sh")
    for one, other in ((first, second), (second, first)):
        told, alone = await after(f"#!/bin/bash\n{one}\n", f"#!/bin/bash\n{other}\n", files)
        assert told == alone


async def test_where_logs_lead_counts_for_each():
    files = project()
    files.links[f"{ROOT}/l/rates.out"] = "/elsewhere/rates.out"
    told, alone = await after(LITTLE + "true\n", MUCH + "true\n", files)
    assert told == alone
    assert told.leads == {"output": "/elsewhere/rates.out"}


async def test_what_all_run_is_parsed_once_and_asked_for_once(monkeypatch: pytest.MonkeyPatch):
    runs, run = [0], reader.process.run

    async def counting(*args: object, **more: object) -> object:
        runs[0] += 1
        return await run(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(reader.process, "run", counting)
    files, scripts = project(train__py="import torch\n", lib__sh="true\n"), TrialScripts()
    for number in range(1, 41):
        text = ASKED.format(f"{number}G", "5") + "bash lib.sh; python train.py --counted\n"
        found = await scripts.read(text.encode(), PATH, project=ROOT, files=files)  # type: ignore[arg-type]
        assert found.request.memory_per_node == number * 2**30
        assert sorted(found.files) == ["lib.sh", "train.py"]
    assert runs[0] <= 2
    assert sorted(files.asked) == [f"{ROOT}/lib.sh", f"{ROOT}/train.py"]
