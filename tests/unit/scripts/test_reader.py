"""Whole scripts with the files that they run, parsed by the real shfmt."""

from __future__ import annotations

import hashlib
import sys

import anyio
import pytest
from tests.unit.counting import counted
from tests.unit.scripts.project import ROOT, MemoryFiles, project, read, rules

from slurm_agent_tools.errors import ConfigError, StorageError
from slurm_agent_tools.scripts import reader
from slurm_agent_tools.transport import process

CALLS = 110_000  # twice of what the costliest takes
SET = "export CUDA_VISIBLE_DEVICES=0\n"


@pytest.mark.parametrize(
    "body",
    [
        "source lib.sh", ". ./lib.sh", "bash lib.sh", "sh -e lib.sh", "./lib.sh", "srun ./lib.sh", "srun bash lib.sh",
        "bash < lib.sh", "cat lib.sh | bash", 'source "$(dirname "$0")/lib.sh"', "source $SLURM_SUBMIT_DIR/lib.sh",
        "cp lib.sh other.sh; bash other.sh", f"bash {ROOT}/lib.sh", "exec ./lib.sh", "timeout 60 ./lib.sh", "nohup ./lib.sh &",
    ],
)  # fmt: skip
async def test_a_file_of_the_project_is_read_however_it_is_run(body: str):
    reading = await read(body, project(lib__sh=SET))

    assert rules(reading) == {"cuda-visible-devices"}
    assert list(reading.files.values()) == [hashlib.sha256(SET.encode()).hexdigest()]
    assert {finding.evidence.line for finding in reading.findings} == {1}


@pytest.mark.parametrize(
    "body",
    [
        "python train.py", "srun python3 -u train.py --lr 1", "torchrun --nproc_per_node=2 train.py", "python -m train",
        "accelerate launch --num_processes 2 train.py", "uv run train.py", "uv run python train.py", "./train.py",
        "mpirun -np 4 python train.py", "apptainer exec --nv i.sif python train.py", "conda run -n env python train.py",
    ],
)  # fmt: skip
async def test_a_python_program_is_read_however_it_is_run(body: str):
    reading = await read(body, project(train__py="#!/usr/bin/env python\nimport torch\ntorch.device('cuda:1')\n"))

    assert rules(reading) == {"device-index"}
    (finding,) = reading.findings
    assert (finding.evidence.file, finding.evidence.line) == ("train.py", 3)
    assert "cuda:1" in finding.evidence.text


async def test_a_script_in_a_folder_runs_files_beside_it_and_where_it_changes_to():
    files = project(scripts___lib__sh=SET, src___run__sh="sbatch x.sh\n")

    reading = await read("source lib.sh\ncd src\n./run.sh", files, path="scripts/job.sh")

    assert rules(reading) == {"cuda-visible-devices", "direct-submission"}
    assert sorted(reading.files) == ["scripts/lib.sh", "src/run.sh"]


async def test_files_lead_to_files():
    files = project(a__sh="python b.py", b__py="import os\nos.system('bash c.sh')", c__sh="scontrol requeue 1")

    assert rules(await read("bash a.sh", files)) == {"auto-retry"}


async def test_files_that_run_each_other_end():
    files = project(a__sh="bash b.sh", b__sh="bash a.sh")

    assert sorted((await read("bash a.sh", files)).files) == ["a.sh", "b.sh"]


@pytest.mark.parametrize("body", ["(" * 50_000, "$( " * 3000, "f() {\n" * 1000, "echo $((" + "(" * 600])
async def test_more_open_brackets_than_anybody_writes_are_not_given_to_the_parser(monkeypatch, body: str):
    monkeypatch.setattr(process, "run", lambda *_, **__: pytest.fail("it was parsed"))

    assert rules(await read(body)) == {"opaque-code"}


async def test_many_brackets_one_behind_the_other_are_parsed():
    assert rules(await read("(true)\nx=$(date) && { true; }\n" * 600)) == set()


async def test_what_is_nested_too_deeply_needs_a_person():
    chain = {f"s{n}__sh": f"bash s{n + 1}.sh" for n in range(8)}

    assert rules(await read("bash s0.sh", project(**chain))) == {"opaque-code"}


async def test_what_runs_too_many_texts_needs_a_person():
    body = "\n".join(f"bash -c 'echo {number}'" for number in range(100))

    assert rules(await read(body)) == {"opaque-code"}


async def test_a_file_outside_the_project_is_not_read():
    files = MemoryFiles(
        {"/etc/secret.sh": b"sbatch x", f"{ROOT}-b/x.sh": b"sbatch x"}, {f"{ROOT}/in.sh": "/etc/secret.sh"}
    )

    reading = await read(f"source ../../../etc/secret.sh\nsource in.sh\nsource {ROOT}-b/x.sh", files)

    assert (reading.findings, reading.files, files.asked) == ((), {}, [])


async def test_a_program_that_is_no_text_is_recorded_and_left_alone():
    files = MemoryFiles({f"{ROOT}/a.out": b"\x7fELF\0\0sbatch"})

    reading = await read("./a.out", files)

    assert (reading.findings, list(reading.files)) == ((), ["a.out"])


async def test_a_file_that_is_too_large_needs_a_person():
    files = project(big__sh="true")
    files.sizes[f"{ROOT}/big.sh"] = 2**21

    assert rules(await read("bash big.sh", files)) == {"opaque-code"}


async def test_a_file_that_cannot_be_read_needs_a_person():
    class Broken(MemoryFiles):
        async def stat(self, path: str):
            raise StorageError("no")

    assert rules(await read("bash lib.sh", Broken())) == {"opaque-code"}


async def test_evidence_names_the_line_of_a_heredoc():
    reading = await read("true\npython - <<'EOF'\nimport os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\nEOF")

    (finding,) = reading.findings
    assert (finding.evidence.line, finding.evidence.text) == (5, "os.environ['CUDA_VISIBLE_DEVICES'] = '0'")


async def test_evidence_names_the_line_of_a_launcher_that_is_written():
    reading = await read("cat > r.sh <<'EOF'\n#!/bin/bash\nsbatch x.sh\nEOF\nsrun bash r.sh")

    (finding,) = reading.findings
    assert (finding.evidence.line, finding.evidence.text) == (4, "sbatch x.sh")


async def test_variables_that_a_directive_or_argument_exports_are_found():
    assert rules(await read("#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0")) == {"cuda-visible-devices"}
    assert rules(await read("true", arguments={"export": "CUDA_VISIBLE_DEVICES=0"})) == {"cuda-visible-devices"}
    assert rules(await read("#SBATCH --export=ALL,FOO=1")) == set()


async def test_lightning_requeues_itself_on_a_signal_unless_it_is_told_not_to():
    bare = project(t__py="import pytorch_lightning as pl\npl.Trainer()\n")
    told = project(t__py="import lightning\nSLURMEnvironment(auto_requeue=False)\n")
    script = "#SBATCH --signal=SIGUSR1@90\nsrun python t.py"

    assert rules(await read(script, bare)) == {"auto-retry"}
    assert rules(await read(script, told)) == set()
    assert rules(await read("srun python t.py", bare)) == set()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("#!/bin/sh\nsbatch x.sh\n", {"direct-submission"}),
        ("#!/usr/bin/env bash\nsbatch x.sh\n", {"direct-submission"}),
        ("#!/bin/bash -l\nsbatch x.sh\n", {"direct-submission"}),
        ("#!/usr/bin/env python3\nimport os\nos.system('sbatch x')\n", {"direct-submission"}),
        ("#!/usr/bin/env -S python3 -u\nmodel.cuda(0)\n", {"device-index"}),
        ("#!/bin/csh\nsetenv CUDA_VISIBLE_DEVICES 0\n", {"opaque-code", "cuda-visible-devices"}),
        ("#!/usr/bin/perl\nsystem('sbatch x');\n", {"opaque-code", "direct-submission"}),
        ("#!/usr/bin/env Rscript\nprint(1)\n", {"opaque-code"}),
    ],
)
async def test_the_interpreter_decides_how_a_script_is_read(script: str, expected: set[str]):
    assert rules(await read(script)) == expected


async def test_known_arguments_are_put_in_their_places():
    assert rules(await read('"$@"', args=["sbatch", "x.sh"])) == {"direct-submission"}
    assert rules(await read('srun "$1" train.py', args=["python"])) == set()
    assert rules(await read('python train.py --lr "$1"')) == set()


async def test_the_request_is_the_scripts_with_the_arguments_over_it():
    reading = await read("#SBATCH -p cpu --mem=1G # JUSTIFIED: small\ntrue", arguments={"partition": "gpu"})

    request = reading.request
    assert (request.partition, request.justification, request.interpreter) == ("gpu", "small", "/bin/bash")
    assert reading.sha256 == hashlib.sha256(reading.text.encode()).hexdigest()


@pytest.mark.parametrize(
    "script",
    [b"#!/bin/bash\n" + b"echo hello\n" * 1_000_000, b"#!/bin/bash\necho " + b"a" * 10_000_000],
    ids=["10 MB", "one line"],
)
def test_a_script_made_to_be_large_is_read_with_bounded_work(script: bytes):
    reading, calls = counted(
        lambda: anyio.run(lambda: reader.read_script(script, "job.sh", project=ROOT, files=MemoryFiles()))
    )

    assert reading.path == "job.sh"
    assert calls < CALLS


async def test_two_texts_are_parsed_at_once_and_the_others_in_turn(monkeypatch: pytest.MonkeyPatch):
    real, now, most = process.run, 0, 0

    async def run(*words, **more):
        nonlocal now, most
        now += 1
        most = max(most, now)
        try:
            return await real(*words, **more)
        finally:
            now -= 1

    monkeypatch.setattr(process, "run", run)
    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(reader._printed, reader._shfmt(), "bash", b"echo %d\n" % number)
    assert most == 2


async def test_a_missing_shfmt_is_a_config_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reader, "_shfmt", lambda: "/nowhere/shfmt")

    with pytest.raises(ConfigError, match="shfmt"):
        await read("true")


@pytest.mark.parametrize(
    ("lines", "links", "leads"),
    [
        ("--output=logs/x", {"logs/x": "/home/ada/.ssh/x"}, {"output": "/home/ada/.ssh/x"}),
        ("--output=logs/%x.out", {"logs/job.sh.out": "/etc/x"}, {"output": "/etc/x"}),
        ("--output=%x.out -J a", {"a.out": f"{ROOT}/other/a.out"}, {"output": "other/a.out"}),
        ("--output=x --error=y", {"y": "/etc/y"}, {"error": "/etc/y"}),
        ("--input=a --input=b", {"a": "/etc/a", "b": ROOT}, {"input": "."}),
        ("--chdir=sub --output=x", {"sub": "/etc", "sub/x": "/etc/x"}, {"chdir": "/etc", "output": "/etc/x"}),
        ("--output=logs/../x", {"logs/../x": f"{ROOT}-other/x"}, {"output": f"{ROOT}-other/x"}),
        ("--output=./logs//x --error=/dev/null --chdir=.", {}, {}),
        ("--output=../logs/x --error=../own/y", {"../logs/x": "/storage/x", "../own/y": f"{ROOT}/y"}, {"error": "y"}),
        ("--output=logs/%%x.out -J a", {"logs/%x.out": "/etc/x", "logs/%a.out": "/etc/y"}, {"output": "/etc/x"}),
        ("--output=%x%x.out -J %x", {"%x%x.out": "/etc/x"}, {"output": "/etc/x"}),
        ("--time=5", {".": "/etc"}, {}),
    ],
)  # fmt: skip
async def test_where_the_links_in_a_jobs_own_paths_lead_is_told(
    lines: str, links: dict[str, str], leads: dict[str, str]
):
    files = MemoryFiles(links={f"{ROOT}/{name}": target for name, target in links.items()})

    assert (await read(f"#!/bin/bash\n#SBATCH {lines}\ntrue\n", files)).leads == leads


@pytest.mark.parametrize(
    ("body", "times", "again"),
    [
        (SET + "echo one\n", 1, 0),  # and the places of what was found are those of the same answer
        (SET + "echo one\n" * 200, 1, 0),  # of what is large the last is kept
        ("echo one\n", 1, 0),
        (SET + "if true; then\n", 1, 1),
        (SET + "(" * 600 + "true" + ")" * 600, 0, 0),
        (SET + 'srun python train.py --lr "$lr" > "$out/$lr" 2>&1\n' * 10_000, 0, 0),
    ],
    ids=["something was found", "something was found in a long one", "nothing was found", "it has no end",
         "it is nested too deeply", "it is too long"],
)  # fmt: skip
async def test_the_parser_is_started_once_for_a_script_and_again_for_none_that_it_could_not_read(
    monkeypatch, body: str, times: int, again: int
):
    started = []

    async def run(argv: list[str], **more: object):
        started.append(argv)
        return await actual(argv, **more)

    actual = process.run
    monkeypatch.setattr(process, "run", run)

    monkeypatch.setattr(reader, "_PRINTED", {})
    monkeypatch.setattr(reader, "_LARGE", {})
    reading = await read(body)

    assert len(started) == times
    assert (reading.layout is not None) == (body.startswith(SET + "echo"))
    assert await read(body) == reading
    assert len(started) == times + again


async def test_answers_of_the_parser_are_kept_for_a_few_texts_and_in_the_order_they_were_asked_for(monkeypatch):
    kept: dict[tuple[str, str, bytes], bytes] = {}
    monkeypatch.setattr(reader, "_PRINTED", kept)
    monkeypatch.setattr(reader, "_KEPT", 2)

    for number in (1, 2, 1, 3):
        await read(f"echo {number}\n")

    assert [text.split()[-1] for _, _, text in kept] == [b"1", b"3"]


async def test_of_large_texts_the_last_answer_is_kept_and_packed(monkeypatch):
    kept: dict[tuple[str, str, bytes], bytes] = {}
    monkeypatch.setattr(reader, "_LARGE", kept)

    for number in (1, 2):
        assert (await read(SET + f"echo {number}\n" * 500)).layout is not None

    (((_, _, text), packed),) = kept.items()
    assert text.split()[-1] == b"2"
    assert len(packed) < reader._SMALL


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no limit can be set")
async def test_a_script_for_which_the_parser_would_need_more_memory_than_it_may_have_is_opaque(monkeypatch):
    monkeypatch.setattr(reader, "_MEMORY", 24 * 2**20)
    reading = await read("echo one\n" * 3000)

    assert [(finding.rule, "too many commands" in finding.what) for finding in reading.findings] == [
        ("opaque-code", True)
    ]
