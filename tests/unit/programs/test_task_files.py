"""Tasks that a script runs out of a file: those that the command names and those that they need, and no others."""

from __future__ import annotations

import pytest
from tests.unit.scripts.project import ROOT, MemoryFiles, read, rules

SUB, AGAIN, CVD, DARK = {"direct-submission"}, {"auto-retry"}, {"cuda-visible-devices"}, {"opaque-code"}

PACKAGE = (
    '{\n "scripts": {\n  "train": "npm run both && node t.js",\n  "both": "sbatch a.sh",\n  "lint": "eslint ."\n }\n}\n'
)
JUST = """\
name := 'next'

# all of it
default: (build 'x')
    echo done

build target='a' *more:
    make {{target}} $HOME

send: build
    @sbatch {{name}}.sh
"""
PIXI = """\
[workspace]
name = "x"
[tasks]
fit = "python fit.py"
send = { cmd = "sbatch a.sh", depends-on = ["fit"] }
all = { depends-on = ["send"] }
listed = { cmd = ["sbatch", "a.sh"] }
[feature.gpu.tasks]
near = "CUDA_VISIBLE_DEVICES=0 python fit.py"
"""
POE = """\
[tool.poe.tasks]
fit = "python fit.py"
send.shell = "sbatch a.sh"
both = ["fit", "send"]
[tool.pdm.scripts]
go = {composite = ["sbatch a.sh"]}
"""
INVOKE = """\
from invoke import task

@task
def fit(c):
    c.run("python fit.py")

@task(pre=[fit])
def send(c):
    c.run("sbatch a.sh")
"""
DODO = """\
def task_fit():
    return {"actions": ["python fit.py"]}

def task_send():
    return {"actions": ["sbatch a.sh"], "task_dep": ["fit"]}
"""
DVC = """\
stages:
  fit:
    cmd: python fit.py
  send:
    cmd:
      - echo x
      - sbatch a.sh
"""
TASKFILE = "version: 3\ntasks:\n  fit: python fit.py\n  send:\n    deps: [fit]\n    cmds:\n      - sbatch {{.X}}.sh\n"
SNAKEFILE = """\
configfile: "config.yaml"
SAMPLES = ["a", "b"]

rule all:
    input: expand("{s}.out", s=SAMPLES)

rule fit:
    output: "{s}.out"
    threads: 4
    shell:
        "awk '{{print $1}}' {input} "
        "| ./fit -t {threads} > {output}"

def path(x, retries=2):
    return x
"""
NEXTFLOW = '''\
include { SEND } from './modules/send'

log.info """
  usage: sbatch this
"""

process FIT {
    input:
    path x
    script:
    def args = task.ext.args ?: ''
    """
    ./fit $args ${x} > out
    cat <<-END > v.yml
    fit: \\$(./fit --version)
    END
    """
    stub:
    """
    sbatch a.sh
    """
}
'''

COLLECTION = """\
from invoke import task

@task
def send(c):
    c.run("sbatch a.sh")
"""
BARE = '''\
process FIT {
    input:
    path x
    output:
    path "out"

    """
    ./fit ${x}
    """
}

def usage() {
    """
    sbatch this
    """
}
'''

FREE = [
    ("npm run lint", {"package.json": PACKAGE}),
    ("npm ci && npm install", {"package.json": PACKAGE}),
    ("just", {"justfile": JUST}),
    ("just build x", {"justfile": JUST}),
    ("pixi run fit", {"pixi.toml": PIXI}),
    ("pixi run python fit.py", {"pixi.toml": PIXI}),
    ("pixi install", {"pixi.toml": PIXI}),
    ("poe fit", {"pyproject.toml": POE}),
    ("inv fit", {"tasks.py": INVOKE}),
    ("doit fit", {"dodo.py": DODO}),
    ("task fit", {"Taskfile.yml": TASKFILE}),
    ("snakemake --cores 4", {"Snakefile": SNAKEFILE}),
    ("nextflow run main.nf", {"main.nf": NEXTFLOW}),
    ("nextflow run main.nf", {"main.nf": BARE}),
    ("nextflow run -profile site -w /tmp/work pipe --input a.csv", {"pipe/main.nf": NEXTFLOW}),
    ("nextflow run ./pipe\nnextflow run .\nnextflow run /opt/pipe/main.nf", {}),
    ("nextflow run $PIPELINE", {}),
    ("nextflow pull nf-core/rnaseq\nnextflow -version\nnextflow clean -f", {}),
    ("snakemake --profile site", {"site/config.v8+.yaml": "jobs: 4\n"}),
    ("npm --prefix web run lint", {"web/package.json": PACKAGE}),
    ("just", {"justfile": "import 'more.just'\nall:\n  echo x\n", "more.just": "send:\n  sbatch a.sh\n"}),
    ("julia a.jl", {"a.jl": '# include("b.jl")\ninclude("c.jl")\n', "b.jl": "run(`sbatch a.sh`)\n"}),
    ("R CMD INSTALL x\nR CMD BATCH a.R", {"a.R": 'source("a.R")\nx <- 1\n'}),
    ("npm run train\njust send\ninv send", {}),
    ("matlab -batch train", {"train.m": "% sbatch x\ngpuDevice(1);\nx = 1;\n"}),
    ("matlab -nodisplay -r 'try, train(3); catch, end; exit'", {"other.m": "system('sbatch a.sh')\n"}),
]

FOUND = [
    (SUB, "npm run train", {"package.json": PACKAGE}),
    (SUB, "yarn both", {"package.json": PACKAGE}),
    (SUB, "npm test", {"package.json": '{"scripts": {"pretest": "sbatch a.sh", "test": "jest"}}'}),
    (SUB, "just send", {"justfile": JUST}),
    (SUB, "just -f tools/justfile send", {"tools/justfile": JUST}),
    (SUB, "pixi run all", {"pixi.toml": PIXI}),
    (SUB, "pixi run -e gpu listed", {"pixi.toml": PIXI}),
    (CVD, "pixi run near", {"pixi.toml": PIXI}),
    (SUB, "pixi run sbatch a.sh", {}),
    (SUB, "poe both", {"pyproject.toml": POE}),
    (SUB, "uv run poe send", {"pyproject.toml": POE}),
    (SUB, "pdm run go", {"pyproject.toml": POE}),
    (SUB, "inv send", {"tasks.py": INVOKE}),
    (SUB, "invoke --echo fit send", {"tasks.py": INVOKE}),
    (SUB, "doit", {"dodo.py": DODO}),
    (SUB, "doit send", {"dodo.py": DODO}),
    (SUB, "dvc repro", {"dvc.yaml": DVC}),
    (SUB, "dvc exp run", {"dvc.yaml": DVC}),
    (SUB, "task send", {"Taskfile.yml": TASKFILE}),
    (SUB, "snakemake -c 4", {"workflow/Snakefile": 'rule a:\n    shell: """\n    cd x\n    sbatch {input}\n    """\n'}),
    (SUB, "snakemake -s a.smk", {"a.smk": 'rule a:\n    run:\n        import os\n        os.system("sbatch x")\n'}),
    (SUB, "snakemake", {"Snakefile": 'include: "rules/b.smk"\n', "rules/b.smk": 'rule b:\n    shell: "sbatch x"\n'}),
    (SUB, "snakemake", {"Snakefile": 'import os\nos.system("sbatch x")\n'}),
    (SUB, "snakemake", {"Snakefile": 'rule a:\n    script: "s/a.py"\n', "s/a.py": 'import os\nos.system("sbatch x")\n'}),
    (AGAIN, "snakemake", {"Snakefile": 'rule a:\n    retries: 3\n    shell: "./a"\n'}),
    (SUB, "nextflow run .", {"main.nf": NEXTFLOW.replace("./fit $args", "sbatch $args")}),
    (SUB, "nextflow run main.nf", {"main.nf": NEXTFLOW, "modules/send/main.nf": NEXTFLOW.replace("./fit $args", "sbatch $args")}),
    (SUB, "nextflow run main.nf", {"main.nf": "process {\n executor = 'slurm'\n}\n"}),
    (SUB, "nextflow run main.nf", {"main.nf": 'println "sbatch a.sh".execute().text\n'}),
    (SUB, "nextflow run main.nf", {"main.nf": BARE.replace("./fit", "sbatch")}),
    (SUB, "nextflow run main.nf", {"main.nf": 'process A {\n script: "sbatch a.sh"\n}\n'}),
    (SUB, "nextflow -log x.log run pipe -r 3", {"pipe/main.nf": 'process A {\n  script:\n  "sbatch a.sh"\n}\n'}),
    (SUB, "snakemake --profile site", {"site/config.v8+.yaml": "executor: slurm\n"}),
    (SUB, "npm --prefix web run both", {"web/package.json": PACKAGE}),
    (SUB, "pnpm -C web run both", {"web/package.json": PACKAGE}),
    (SUB, "pixi run --manifest-path sub/pixi.toml all", {"sub/pixi.toml": PIXI}),
    (SUB, "inv send", {"tasks/__init__.py": COLLECTION}),
    (SUB, "inv -c other send", {"other.py": COLLECTION}),
    (SUB, "fab send", {"fabfile.py": COLLECTION}),
    (SUB, "dvc repro sub/dvc.yaml:send", {"sub/dvc.yaml": DVC}),
    (SUB, "just send", {"justfile": "import 'more.just'\n", "more.just": "send:\n  sbatch a.sh\n"}),
    (SUB, "julia a.jl", {"a.jl": 'include("src/b.jl")\n', "src/b.jl": 'include("c.jl")\n', "src/c.jl": "run(`sbatch a.sh`)\n"}),
    (SUB, "julia -e 'include(\"a.jl\")'", {"a.jl": "run(`sbatch a.sh`)\n"}),
    (SUB, "R CMD BATCH a.R", {"a.R": 'source("b.R")\n', "b.R": 'system("sbatch a.sh")\n'}),
    (SUB, "matlab -batch train", {"train.m": "run('more.m')\n", "more.m": "!sbatch a.sh\n"}),
    (SUB, "matlab -batch train", {"train.m": "system('sbatch a.sh')\n"}),
    (SUB, "matlab -r \"addpath('src'); run('src/go.m'); exit\"", {"src/go.m": "!sbatch a.sh\n"}),
    (SUB, "matlab -batch \"c = parcluster('slurm_big'); train\"", {}),
    ({"device-index"}, "octave train.m", {"train.m": "gpuDevice(2)\n"}),
    (DARK, "npm run x", {"package.json": "{"}),
    (DARK, "pixi run x", {"pixi.toml": "[tasks"}),
    (DARK, "dvc repro", {"dvc.yaml": "a: [\n"}),
    (DARK, "inv x", {"tasks.py": "def ("}),
]  # fmt: skip


def files(texts: dict[str, str]) -> MemoryFiles:
    return MemoryFiles({f"{ROOT}/{name}": text.encode() for name, text in texts.items()})


@pytest.mark.parametrize(("text", "texts"), FREE, ids=[text for text, _ in FREE])
async def test_tasks_that_are_not_run_or_do_nothing_wrong_are_nothing(text: str, texts: dict[str, str]):
    assert rules(await read(text, files(texts))) == set()


@pytest.mark.parametrize(
    ("expected", "text", "texts"), FOUND, ids=[f"{text} {n}" for n, (_, text, _) in enumerate(FOUND)]
)
async def test_what_a_task_does_is_found(expected: set[str], text: str, texts: dict[str, str]):
    assert rules(await read(text, files(texts))) == expected


@pytest.mark.parametrize(
    ("text", "name", "content", "line"),
    [
        ("npm run train", "package.json", PACKAGE, 4),
        ("just send", "justfile", JUST, 11),
        ("pixi run send", "pixi.toml", PIXI, 5),
        ("dvc repro", "dvc.yaml", DVC, 7),
        ("task send", "Taskfile.yml", TASKFILE, 7),
        ("inv send", "tasks.py", INVOKE, 9),
        ("snakemake", "Snakefile", SNAKEFILE.replace("./fit -t", "sbatch -t"), 11),
        ("nextflow run main.nf", "main.nf", NEXTFLOW.replace("./fit $args", "sbatch $args"), 13),
    ],
)
async def test_a_finding_names_the_file_of_the_task_and_about_its_line(text: str, name: str, content: str, line: int):
    reading = await read(text, files({name: content}))
    place = reading.findings[0].evidence

    assert (place.file, place.line) == (name, line)
    assert name in reading.files


async def test_a_large_workflow_is_read_in_part_and_is_no_reason_to_ask():
    texts = {f"r{n}.smk": f'include: "r{n + 1}.smk"\nrule r{n}:\n    shell: "./a {{input}}"\n' for n in range(100)}
    reading = await read("snakemake -s r0.smk", files(texts))

    assert rules(reading) == set()
    assert len(reading.files) <= 40


@pytest.mark.parametrize(
    ("text", "texts", "file"),
    [
        ("nextflow run nf-core/rnaseq -profile singularity --input a.csv", {}, "job.sh"),
        ("nextflow run -r 3.1 https://host/some/pipe", {"main.nf": NEXTFLOW}, "job.sh"),
        ("nextflow -q run hello", {}, "job.sh"),
        ("snakemake -s https://host/a.smk", {}, "job.sh"),
        ("snakemake", {"Snakefile": 'module a:\n    snakefile: github("o/r", path="a.smk", tag="1")\n'}, "Snakefile"),
    ],
)
async def test_of_a_workflow_that_is_fetched_it_is_said_that_it_cannot_be_read(
    text: str, texts: dict[str, str], file: str
):
    told = [(one.rule, one.level, one.evidence.file) for one in (await read(text, files(texts))).findings]

    assert told == [("opaque-code", "warn", file)]


async def test_a_pipeline_that_the_project_has_is_read_and_not_fetched():
    assert (await read("nextflow run some/pipe", files({"some/pipe/main.nf": NEXTFLOW}))).findings == ()
