"""One changed byte behind a smoke run, in a file that a job reads in one of the ways in which jobs read files."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

import pytest
from tests.unit.services.ladders import SCRIPT, closed, laboratory, large, over, smoke
from tests.unit.services.scenes import Scene

from slurm_agent_tools.backends import stages

HYDRA = "import hydra\n@hydra.main(config_path='conf', config_name='train')\ndef main(config): ...\n"
PACKAGE = {"src/pkg/__init__.py": "", "src/pkg/main.py": "from pkg import inner\n"}

READ: dict[str, tuple[str, Mapping[str, str], str]] = {
    "a setting that only a folder names": ("", {"train.py": HYDRA, "conf/train.yaml": "a: 1\n"}, "conf/train.yaml"),
    "a setting of a setting": ("", {"train.py": HYDRA, "conf/model/big.yaml": "a: 1\n"}, "conf/model/big.yaml"),
    "a setting named without its ending": ("", {"configs/a.yaml": "base: base\n", "configs/base.yaml": "a: 1\n"}, "configs/base.yaml"),
    "variables from a file": ("", {"train.py": "from dotenv import load_dotenv\nload_dotenv()\n", ".env": "A=1\n"}, ".env"),
    "a path that is joined": ("", {"train.py": "import os\nopen(os.path.join('data', 'w.txt'))\n", "data/w.txt": "1\n"}, "data/w.txt"),
    "a path behind a slash": ("", {"train.py": "(Path('data') / 'w.txt').read_text()\n", "data/w.txt": "1\n"}, "data/w.txt"),
    "a path below a folder that has a name": ("", {"train.py": "D = Path('data')\n(D / 'w.txt').read_text()\n", "data/w.txt": "1\n"}, "data/w.txt"),
    "a path with something filled in": ("", {"train.py": "open(f'data/{part}.txt')\n", "data/w.txt": "1\n"}, "data/w.txt"),
    "a pattern in a program": ("", {"train.py": "glob.glob('data/*.csv')\n", "data/w.csv": "1\n"}, "data/w.csv"),
    "a pattern in the script": ("for f in configs/*.yaml; do python train.py --config $f; done", {"configs/b.yaml": "a: 1\n"}, "configs/b.yaml"),
    "a loop over names": ("for n in b c; do python train.py --config configs/$n.yaml; done", {"configs/b.yaml": "a: 1\n"}, "configs/b.yaml"),
    "a name with a space in a program": ("", {"train.py": "open('data/my points.csv')\n", "data/my points.csv": "1\n"}, "data/my points.csv"),
    "a name with a space in the script": ("python train.py --data 'data/my points.csv'", {"data/my points.csv": "1\n"}, "data/my points.csv"),
    "a name with other letters": ("python train.py --data data/größe.csv", {"data/größe.csv": "1\n"}, "data/größe.csv"),
    "a name without an ending": ("./solver < INCAR", {"INCAR": "1\n", "solver": "#!/bin/sh\n"}, "INCAR"),
    "a name without an ending in a program": ("", {"train.py": "open('INCAR')\n", "INCAR": "1\n"}, "INCAR"),
    "a package below src": ("python -m pkg.main", PACKAGE | {"src/pkg/inner.py": "a = 1\n"}, "src/pkg/inner.py"),
    "a package on the path": ("export PYTHONPATH=src\npython -m pkg.main", PACKAGE | {"src/pkg/inner.py": "a = 1\n"}, "src/pkg/inner.py"),
    "a module on a path that the program adds": ("", {"train.py": "sys.path.insert(0, 'libs')\nimport inner\n", "libs/inner.py": "a = 1\n"}, "libs/inner.py"),
    "a path with a folder filled in": ("", {"train.py": "root = 'data'\nopen(f'{root}/w.csv')\n", "data/w.csv": "1\n"}, "data/w.csv"),
    "a path with a sign for a number": ("", {"train.py": "open('data/%s.csv' % part)\n", "data/w.csv": "1\n"}, "data/w.csv"),
    "a file within a folder that settings name": ("", {"configs/a.yaml": "data_dir: data\nfile: w.csv\n", "data/w.csv": "1\n"}, "data/w.csv"),
    "settings of a group": ("", {"configs/a.yaml": "defaults:\n  - optim/adam\n", "configs/optim/adam.yaml": "a: 1\n"}, "configs/optim/adam.yaml"),
    "the module of a class that settings name": ("", {"configs/a.yaml": "_target_: lab.late.Model\n", "lab/late.py": "a = 1\n"}, "lab/late.py"),
    "the module of a class that a program names": ("", {"train.py": "kind = 'lab.late.Model'\n", "lab/late.py": "a = 1\n"}, "lab/late.py"),
    "a list of files": ("while read f; do python train.py $f; done < list.txt", {"list.txt": "configs/c.yaml\n", "configs/c.yaml": "a: 1\n"}, "configs/c.yaml"),
    "a file that another program's input includes": ("lmp -in in.run", {"in.run": "include potential/eam.txt\n", "potential/eam.txt": "1\n"}, "potential/eam.txt"),
    "a module that was compiled": ("", {"train.py": "import fast\n", "fast.cpython-311-x86_64-linux-gnu.so": "1\n"}, "fast.cpython-311-x86_64-linux-gnu.so"),
    "an import of everything": ("", {"train.py": "from star import *\n", "star.py": "a = 1\n"}, "star.py"),
    "an import over several lines": ("", {"train.py": "from lab import (\n    one,\n    two,\n)\n", "lab/two.py": "a = 1\n"}, "lab/two.py"),
    "a module of a program on standard input": ("python - <<'EOF'\nimport star\nEOF", {"star.py": "a = 1\n"}, "star.py"),
    "a module of a program in the command": ("python -c 'import star; star.main()'", {"star.py": "a = 1\n"}, "star.py"),
    "a name beside the sign of writing": ("", {"train.py": "p, mode = 'data/weights.txt', 'w'\nopen(p)\n"}, "data/weights.txt"),
    "a name before a comment on writing": ("", {"train.py": "p = 'data/weights.txt'  # not \"w\"\nopen(p)\n"}, "data/weights.txt"),
    "settings of the log": ("python train.py --log-config configs/log.yaml", {"configs/log.yaml": "a: 1\n"}, "configs/log.yaml"),
    "settings of an option that begins with o": ("python train.py --optimizer configs/o.yaml", {"configs/o.yaml": "a: 1\n"}, "configs/o.yaml"),
    "settings that a line never writes": ("false && : >> configs/a.yaml", {}, "configs/a.yaml"),
    "data that a line never writes": ("if false; then\n: > data/points.csv\nfi", {}, "data/points.csv"),
    "data that a line behind the end writes": ("exit 0\n: > data/points.csv", {}, "data/points.csv"),
    "data that gets more": ("date >> data/points.csv", {}, "data/points.csv"),
    "code that is declared as written": ("#SMOKE writes: helper.py", {}, "helper.py"),
    "settings that are declared as written": ("#SMOKE writes: configs/a.yaml", {}, "configs/a.yaml"),
    "a recipe of make": ("make train", {"Makefile": "train:\n\tpython other.py\n", "other.py": "a = 1\n"}, "other.py"),
    "a file that a sourced one sources": ("source lib/env.sh", {"lib/env.sh": "source lib/more.sh\n", "lib/more.sh": "A=1\n"}, "lib/more.sh"),
    "a path from the folder of the submission": ('python train.py --config "$SLURM_SUBMIT_DIR/configs/b.yaml"', {"configs/b.yaml": "a: 1\n"}, "configs/b.yaml"),
}  # fmt: skip
"""A line of the script, files beside those of the laboratory, and the file that changes."""


def written(scene: Scene, name: str, text: str) -> None:
    """A file that is written now, by the clock of the cluster."""
    scene.write(name, text)
    now = scene.slurm.clock.now().timestamp()
    os.utime(scene.project / name, (now, now))


def prepared(scene: Scene, line: str, files: Mapping[str, str]) -> None:
    laboratory(scene)
    head = line if line.startswith("#SMOKE") else ""
    body = line.removeprefix(head)
    text = SCRIPT.replace("#SMOKE length", f"{head}\n#SMOKE length").replace("python -m lab", f"{body}\npython -m lab")
    for name, content in {"train.sh": text, **files}.items():
        scene.write(name, content)


@pytest.mark.proves("no-way-around-smoke", "smoke-comes-first")
@pytest.mark.parametrize("way", READ)
async def test_one_changed_byte_closes_what_a_smoke_run_opened(scene: Scene, way: str):
    line, files, name = READ[way]
    prepared(scene, line, files)
    scene.slurm.next_job(after=60)
    tried = await scene.submit(args=["--steps", "50"], stage="smoke", time_limit="00:20:00")
    assert tried.status == "submitted", tried.summary
    if line.startswith("#SMOKE writes"):
        scene.slurm.clock.move(30)
        written(scene, name, (scene.project / name).read_text())  # it writes what was there
    await over(scene, tried.job_id)
    assert (await large(scene, dry_run=True)).status == "dry_run"
    content = (scene.project / name).read_text()

    scene.write(name, f"{content}#")
    assert name in closed(await large(scene), "justify")
    scene.write(name, content)
    assert (await large(scene)).status == "submitted"


@pytest.mark.proves("no-way-around-smoke")
@pytest.mark.parametrize("after", [0, 60])
async def test_what_is_added_once_the_smoke_run_has_ended_was_not_written_by_it(scene: Scene, after: int):
    prepared(scene, "", {"train.py": "if os.path.exists('data/late.csv'):\n    open('data/late.csv')\n"})
    await smoke(scene)
    ended = scene.context.store.staged(scene.context.owner)[0].ended
    assert ended is not None
    scene.slurm.clock.move(after)
    scene.write("data/late.csv", "1\n")
    at = ended.timestamp() + after
    os.utime(scene.project / "data/late.csv", (at, at))

    reply = await large(scene)

    assert reply.status == ("blocked" if after else "submitted"), reply.summary


@pytest.mark.proves("no-way-around-smoke")
@pytest.mark.parametrize(
    ("line", "tried", "then"),
    [
        ('[ "$SLURM_JOB_NAME" = smoke ] && exit 0', {"job_name": "smoke"}, {}),
        ('case "${SLURM_JOB_PARTITION}" in cpu) exit 0;; esac', {}, {"partition": "gpu"}),
    ],
)
async def test_a_script_that_reads_what_it_is_called_or_where_it_runs_is_tried_with_that(
    scene: Scene, line: str, tried: dict[str, Any], then: dict[str, Any]
):
    prepared(scene, line, {})
    scene.slurm.next_job(after=60)
    reply = await scene.submit(args=["--steps", "50"], stage="smoke", time_limit="00:20:00", **tried)
    assert reply.status == "submitted", reply.summary
    await over(scene, reply.job_id)

    assert "what Slurm tells it" in closed(await large(scene, **then), "justify")
    assert (await large(scene, **tried)).status == "submitted"


@pytest.mark.parametrize("name", ["--hidden-size", "--num_layers", "--lr", "model.width", "grid_x", "BATCH_SIZE"])
async def test_what_makes_a_job_larger_or_another_is_no_length(scene: Scene, name: str):
    laboratory(scene)
    scene.write("train.sh", SCRIPT.replace("length: --steps", f"length: {name} --steps"))

    assert f"`{name}` is no name of a length" in closed(await large(scene), "deny")


@pytest.mark.proves("smoke-comes-first")
@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("python train.py > run.txt\ngrep loss run.txt", "run.txt"),
        ("cat > made.yaml <<EOF\nseed: $SLURM_JOB_ID\nEOF\npython train.py --config made.yaml", "made.yaml"),
        ("python train.py --output-dir=runs/last.csv\ncat runs/last.csv", "runs/last.csv"),
        ("date >> when.txt", "when.txt"),
        ("for n in 1 2; do python train.py | tee part.txt; done", "part.txt"),
    ],
)
async def test_what_a_script_makes_anew_in_each_run_is_no_change(scene: Scene, line: str, name: str):
    prepared(scene, line, {name: "from before\n"})
    await smoke(scene)
    scene.write(name, "from the smoke run\n")

    reply = await large(scene)
    assert reply.status == "submitted", reply.summary


@pytest.mark.parametrize(("lines", "beside"), [(1, False), (3000, True)])
async def test_the_parts_of_a_large_script_are_told_beside_the_event_loop(
    scene: Scene, lines: int, beside: bool, monkeypatch: pytest.MonkeyPatch
):
    """Twenty lengths were sought in half a megabyte, and whoever else asked the site's service waited."""
    seen: dict[str, set[bool]] = {}
    for name in ("parts_of", "declared"):
        real = getattr(stages, name)

        def noted(*words: Any, real: Any = real, name: str = name, **more: Any) -> Any:
            seen.setdefault(name, set()).add(threading.current_thread() is not threading.main_thread())
            return real(*words, **more)

        monkeypatch.setattr(stages, name, noted)
    prepared(scene, "# a comment\n" * lines, {})
    await smoke(scene)
    assert seen == {"parts_of": {beside}, "declared": {beside}}
