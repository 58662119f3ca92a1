"""Commands that reach Slurm by a way around: another login, a list of commands, what a makefile or a workflow includes."""

from __future__ import annotations

import pytest
from tests.unit.scripts.project import project, read, rules

SUB, AGAIN, CVD = {"direct-submission"}, {"auto-retry"}, {"cuda-visible-devices"}
SEND = "sbatch next.sh\n"
PROFILES = "profiles {\n  cluster {\n    process.executor = 'slurm'\n  }\n  local { process.executor = 'local' }\n}\n"


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("ssh login srun -N4 python train.py", SUB),
        ("ssh login 'cd x && srun -p gpu --gpus=8 python train.py'", SUB),
        ("su - me -c 'srun python train.py'", SUB),
        ("sudo -i srun python train.py", SUB),
        ("setpriv --reset-env srun python train.py", SUB),
        ("exec -c srun python train.py", SUB),
        ("sudo -E srun python train.py", set()),
        ("su me -c 'srun python train.py'", set()),
        ('su - me -c "$(cat work)"', {"opaque-code"}),
        ('ssh login "$(cat work)"', {"opaque-code"}),
        ("ssh login", set()),
        ("exec srun python train.py", set()),
        ("setpriv --nnp srun python train.py", set()),
        ("ssh login nvidia-smi", set()),
        ("python run.py --launcher 'sbatch next.sh'", SUB),
        ("python3 run.py --launcher 'sbatch next.sh'", SUB),
        ("python -c 'print(\"; sbatch next.sh\")'", set()),
        ("parallel ::: 'sbatch a.sh' 'sbatch b.sh'", SUB),
        ("parallel ::: 'python a.py' 'python b.py'", set()),
        ("parallel python train.py --seed {} ::: 1 2", set()),
        ("parallel", set()),
        ("while [[ ! -s out/model.pt ]]; do python train.py --out out/model.pt; done", AGAIN),
        ("until [[ -f out/model.pt ]]; do python train.py --out out/model.pt; done", AGAIN),
        ("while [[ ! -f shared/ready ]]; do sleep 5; done", set()),
    ],
)
async def test_another_login_and_lists_of_commands(script: str, found: set[str]):
    assert rules(await read(script + "\n")) == found


@pytest.mark.parametrize(
    "words", ["-a jobs.txt", "-ajobs.txt", "--arg-file jobs.txt", "--arg-file=jobs.txt", ":::: jobs.txt"]
)
async def test_lines_of_a_file_that_parallel_runs(words: str):
    for text, found in ((SEND, SUB), ("python a.py\n", set())):
        assert rules(await read(f"parallel -j2 {words}\n", project(jobs__txt=text))) == found
    assert rules(await read(f"parallel {words} python train.py\n", project(jobs__txt="7\n"))) == set()


MAKEFILES = [
    ("include rules.mk\n", SUB),
    ("-include rules.mk\n", SUB),
    ("F = rules.mk\nsinclude $(F)\n", SUB),
    ("include flags.mk\ngo:\n\tpython train.py\n", CVD),
    ("X := $(shell sbatch next.sh)\ngo:\n\ttrue\n", SUB),
    ("X != sbatch next.sh\ngo:\n\ttrue\n", SUB),
    ("X := $(shell git rev-parse HEAD)\ngo:\n\tpython train.py\n", set()),
    ("-include $(wildcard *.d)\ngo:\n\tpython train.py\n", set()),
    ("-include missing.mk\ngo:\n\tpython train.py\n", set()),
]


@pytest.mark.parametrize(("text", "found"), MAKEFILES)
async def test_what_a_makefile_includes_and_runs_at_once(text: str, found: set[str]):
    others = {"rules__mk": "go:\n\tsbatch next.sh\n", "flags__mk": "export CUDA_VISIBLE_DEVICES := 1\n"}
    assert rules(await read("make go\n", project(Makefile=text, **others))) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".DEFAULT_GOAL := go\nall:\n\ttrue\ngo:\n\tsbatch next.sh\n", SUB),
        ("all:\n\ttrue\ngo:\n\tsbatch next.sh\n", set()),
        ("all: out.txt\n.in.txt:\n\tsbatch next.sh\n", SUB),
        ("all: other\n.DEFAULT:\n\tsbatch next.sh\n", SUB),
    ],
)
async def test_the_goal_of_make_without_a_word_and_its_old_rules(text: str, found: set[str]):
    assert rules(await read("make\n", project(Makefile=text))) == found


@pytest.mark.parametrize(
    ("words", "config", "found"),
    [
        ("-profile cluster", PROFILES, SUB),
        ("-profile local", PROFILES, set()),
        ("", PROFILES, set()),
        ("", "includeConfig 'conf/cluster.config'\n", SUB),
        ("-profile local,cluster", "includeConfig 'conf/profiles.config'\n", SUB),
        ("", "includeConfig 'conf/profiles.config'\n", set()),
        ("", PROFILES + "process.executor = 'slurm'\n", SUB),
    ],
)
async def test_profiles_that_nextflow_is_told_and_settings_that_it_includes(words: str, config: str, found: set[str]):
    made = project(
        main__nf="process A { script: 'true' }\n", nextflow__config=config,
        conf___cluster__config="process.executor = 'slurm'\n", conf___profiles__config=PROFILES,
    )  # fmt: skip
    assert rules(await read(f"nextflow run main.nf {words}\n", made)) == found


RULE = "rule a:\n  output: 'x'\n  shell: 'touch x'\n"


@pytest.mark.parametrize("place", ["profiles___default___config__yaml", "workflow___profiles___default___config__yaml"])
async def test_the_profile_that_snakemake_takes_by_itself(place: str):
    made = project(Snakefile=RULE, **{place: "executor: slurm\n"})
    assert rules(await read("snakemake -j1\n", made)) == SUB
    assert rules(await read("snakemake -j1 --workflow-profile none\n", made)) == set()


@pytest.mark.parametrize("when", ["onstart", "onsuccess", "onerror"])
async def test_what_snakemake_does_around_a_workflow(when: str):
    assert rules(await read("snakemake -j1\n", project(Snakefile=f"{when}:\n  shell('sbatch next.sh')\n{RULE}"))) == SUB
    assert rules(await read("snakemake -j1\n", project(Snakefile=f"{when}:\n  print('sbatch')\n{RULE}"))) == set()


@pytest.mark.parametrize(
    "place",
    [
        "'lib'", "'./lib'", "os.path.join(os.path.dirname(__file__), '..', 'lib')", "str(Path(__file__).parent.parent / 'lib')",
    ],
)  # fmt: skip
async def test_modules_in_a_folder_that_python_is_told(place: str):
    main = f"import sys\nsys.path.insert(0, {place})\nimport hidden\nhidden.go()\n"
    made = project(tools___main__py=main, lib___hidden__py="import os\ndef go(): os.system('sbatch next.sh')\n")
    assert rules(await read("python tools/main.py\n", made)) == SUB


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("declare -n command=other\nother=sbatch\n$command next.sh", SUB),
        ("declare -n command=other\nother=python\n$command train.py", set()),
        ("declare -u name=cuda_visible_devices\nexport $name=1", CVD),
        ("declare -u name=omp_num_threads\nexport $name=1", set()),
        ("python train.py\ncase $? in 0) ;; *) python train.py ;; esac", AGAIN),
        ("python train.py\ncode=$?\ncase $code in 0) ;; *) python train.py ;; esac", AGAIN),
        ("python train.py\ncase $? in 0) python eval.py ;; *) echo failed ;; esac", set()),
        ("python train.py\ncase $MODE in a) ;; *) python train.py ;; esac", set()),
    ],
)
async def test_variables_that_stand_for_others_and_a_case_of_the_status(script: str, found: set[str]):
    assert rules(await read(script + "\n")) == found


ENVIRONMENTS = [
    (
        "task train",
        {"Taskfile__yml": "tasks:\n  train:\n    env: {CUDA_VISIBLE_DEVICES: '1'}\n    cmds: [python t.py]\n"},
    ),
    ("task train", {"Taskfile__yml": "env: {CUDA_VISIBLE_DEVICES: '1'}\ntasks:\n  train:\n    cmds: [python t.py]\n"}),
    ("pixi run train", {"pixi__toml": "[tasks]\ntrain = {cmd = 'python t.py', env = {CUDA_VISIBLE_DEVICES = '1'}}\n"}),
    (
        "poe train",
        {"pyproject__toml": "[tool.poe.tasks.train]\ncmd = 'python t.py'\nenv = {CUDA_VISIBLE_DEVICES = '1'}\n"},
    ),
]


@pytest.mark.parametrize(("command", "named"), ENVIRONMENTS)
async def test_variables_that_a_task_gets_by_its_file(command: str, named: dict[str, str]):
    assert rules(await read(command + "\n", project(**named))) == CVD
    harmless = {name: text.replace("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS") for name, text in named.items()}
    assert rules(await read(command + "\n", project(**harmless))) == set()


async def test_the_environment_of_another_task_is_not_that_of_the_one_that_runs():
    text = (
        "tasks:\n  a:\n    env: {CUDA_VISIBLE_DEVICES: '1'}\n    cmds: [python t.py]\n  b:\n    cmds: [python t.py]\n"
    )
    assert rules(await read("task b\n", project(Taskfile__yml=text))) == set()
