"""generate_script with format pbs: 25 requests, read by a strict grammar, and run by bash as PBS would run them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from tests.unit.backends import pbs_grammar
from tests.unit.backends.exporting import Asked, bash_reads, cases, generated, requests

from slurm_agent_tools.backends.export.exported_job import JobToExport
from slurm_agent_tools.backends.export.formats import FORMATS
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.units import indices


def test_there_are_25_requests():
    assert len(requests("pbs")) == 25


@pytest.mark.proves("exports-are-valid")
@pytest.mark.parametrize("asked", cases("pbs"))
async def test_a_script_for_pbs_holds_only_what_pbs_documents(tmp_path: Path, asked: Asked):
    reply = await generated(tmp_path, **asked)

    assert reply.status == "written", reply.reason
    assert reply.path is not None
    assert reply.path.endswith(".pbs")
    assert reply.manual_commands == [f"qsub {reply.path}"]
    text = (tmp_path / "project" / reply.path).read_text()
    assert text == reply.script
    script = pbs_grammar.read(text)
    assert script.options["r"] == "n", "PBS would run it again by itself"
    assert script.resources["walltime"]
    assert bash_reads(text)


@pytest.mark.parametrize(
    ("asked", "chunk"),
    [
        ({"gpus": 4, "memory": "64G"}, (1, {"ncpus": "16", "mpiprocs": "1", "ngpus": "4", "mem": "64gb"})),
        ({"gpus": 0, "memory": "700M", "cpus": 1}, (1, {"ncpus": "1", "mpiprocs": "1", "mem": "700mb"})),
        ({"command": "mpirun ./a", "launcher": "mpi", "nodes": 2, "gpus": 0, "cpus": 8, "memory": "8G"},
         (2, {"ncpus": "4", "mpiprocs": "4", "mem": "4gb"})),
    ],
)  # fmt: skip
async def test_a_chunk_holds_what_was_asked_for_one_node(tmp_path: Path, asked: Asked, chunk: object):
    script = pbs_grammar.read((await generated(tmp_path, format="pbs", **asked)).script or "")

    assert script.chunks == [chunk]
    assert ("place" in script.resources) == (chunk[0] > 1)  # type: ignore[index]


@pytest.mark.parametrize(
    ("array", "option"),
    [("0-3", "0-3"), ("0-99%4", "0-99%4"), ("5-8", "5-8"), ("0-20:5%2", "0-20:5%2"), ("1,3,8-9", "0-3"), ("7", None),
     ("1,4,7", "1-7:3"), ("[2-3]%1", "2-3%1")],
)  # fmt: skip
async def test_an_array_is_one_of_pbs_and_each_task_has_the_number_that_slurm_would_give(
    tmp_path: Path, array: str, option: str | None
):
    command = 'echo "task=$SLURM_ARRAY_TASK_ID"'
    reply = await generated(tmp_path, format="pbs", command=command, array=array, gpus=0)
    script = pbs_grammar.read(reply.script or "")

    assert script.options.get("J") == option
    first, last, step = _span(option)
    done = [_run(reply.script or "", tmp_path, PBS_ARRAY_INDEX=str(index)) for index in range(first, last + 1, step)]
    assert [text.partition("=")[2] for text in done] == [str(number) for number in _numbers(array)]


def _span(option: str | None) -> tuple[int, int, int]:
    if option is None:
        return 0, 0, 1
    span, _, step = option.partition("%")[0].partition(":")
    first, _, last = span.partition("-")
    return int(first), int(last), int(step or 1)


def _numbers(array: str) -> list[int]:
    return sorted(indices(array.partition("%")[0].strip("[]")))


def _run(script: str, folder: Path, **env: str) -> str:
    around = {"PBS_O_WORKDIR": str(folder), "PBS_JOBID": "4711[].pbs.example.org", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash"], input=script, env=around | env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


async def test_variables_of_slurm_have_the_values_that_pbs_knows(tmp_path: Path):
    names = ("JOB_ID", "JOB_NAME", "SUBMIT_DIR", "CPUS_PER_TASK", "NTASKS", "NNODES", "MEM_PER_NODE")
    command = "echo " + " ".join(f'"$SLURM_{name}"' for name in names)
    reply = await generated(tmp_path, format="pbs", name="a 'b'", command=command, gpus=0, memory="2G", cpus=3)

    assert _run(reply.script or "", tmp_path) == f"4711 a 'b' {tmp_path} 3 1 1 2048"


async def test_a_variable_that_pbs_has_nothing_for_is_an_error(tmp_path: Path):
    with pytest.raises(InputError, match=r"SLURM_JOB_NODELIST.*PBS has no value for"):
        await generated(tmp_path, format="pbs", command='echo "$SLURM_JOB_NODELIST"')


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"partition": "a queue"}, "partition.*queue of PBS"),
        ({"partition": "a" * 16}, "partition.*queue of PBS"),
        ({"command": "module load a; srun ./a"}, "srun.*a command of Slurm"),
        ({"image": "x:1"}, "image.*means nothing to format pbs"),
        ({"gpu_type": "A100"}, "gpu_type.*means nothing to format pbs"),
        ({"distributed": True}, "srun, which only Slurm has"),
        ({"command": "torchrun t.py", "gpus": 4, "nodes": 2, "distributed": True}, "launcher to mpi"),
        ({"command": "mpirun ./a", "launcher": "mpi", "checkpoint": {"dir": "c", "signal_before": "5m"}}, "signal"),
        ({"command": "cd x && ./a", "checkpoint": {"dir": "c", "signal_before": "5m"}}, "more than one program"),
    ],
)
async def test_what_pbs_cannot_be_asked_is_an_error_that_names_the_field(tmp_path: Path, asked: Asked, problem: str):
    with pytest.raises(InputError, match=problem):
        await generated(tmp_path, **{"format": "pbs", "command": "./a", "gpus": 0} | asked)
    assert not (tmp_path / "project/scripts").exists()


async def test_an_odd_name_becomes_one_that_pbs_takes_and_the_answer_says_so(tmp_path: Path):
    reply = await generated(tmp_path, format="pbs", name="7 über")
    script = pbs_grammar.read(reply.script or "")

    assert script.options["N"] == "job-7-ber"
    assert any("job-7-ber" in reason for reason in reply.reasons)


async def test_mail_goes_to_the_address_of_the_settings():
    job = JobToExport("a", "ff", "true", 1, 1, 1, 0, 2**30, 60, mail_user="me@example.org")
    script = pbs_grammar.read(FORMATS["pbs"].write(job))
    assert (script.options["m"], script.options["M"]) == ("ae", "me@example.org")


@pytest.mark.parametrize(
    "line",
    [
        "#PBS -l select=1:ncpu=4",
        "#PBS -l select=1:ncpus=4:ngpu=1",
        "#PBS -l select=1:ncpus=0",
        "#PBS -l select=1:ncpus=2:mpiprocs=4",
        "#PBS -l select=1:ncpus=2:mem=16G",
        "#PBS -l select=1:ncpus=2:mem=2xb",
        "#PBS -l waltime=1:00:00",
        "#PBS -l walltime=banana",
        "#PBS -J 0-0",
        "#PBS -J 1,2",
        "#PBS -N 7train",
        "#PBS --time=60",
        "#PBS -Q x",
    ],
)
def test_the_grammar_refuses_what_slurms_reader_of_pbs_lets_pass(line: str):
    good = "#!/bin/bash\n#PBS -l select=1:ncpus=4\n#PBS -l walltime=01:00:00\necho\n"
    pbs_grammar.read(good)
    name = line.split("=", maxsplit=1)[0]
    lines = [one for one in good.splitlines() if not one.startswith(name)]
    lines.insert(1, line)
    with pytest.raises(pbs_grammar.NotPBS):
        pbs_grammar.read("\n".join(lines))


def test_a_directive_behind_the_first_command_is_no_directive():
    with pytest.raises(pbs_grammar.NotPBS):
        pbs_grammar.read("#!/bin/bash\n#PBS -l select=1\necho\n#PBS -r n\n")
