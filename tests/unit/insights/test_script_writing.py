from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.insights.script_writing import Draft, compose, fallback
from slurm_agent_tools.models.decision import Decision, PolicyUsed, RuleDecision
from slurm_agent_tools.models.job import JobRecord, Usage
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate, format_refusal
from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.policy.plan import pins
from slurm_agent_tools.scripts.directive_lines import read_directives
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.transport.local import LocalFiles

GIB = 2**30
NOW = datetime(2026, 3, 1, 12, 0, 5, tzinfo=UTC)
POLICY = load(shipped())
LIMITS = POLICY.policy.limits


def partition(name: str, hours: int | None, gpus: int = 0, *, cpus: int = 32, memory: int = 128, **facts) -> Partition:
    plain = {"state": "UP", "default": False, "nodes": 4, "default_time_seconds": None, "total_gpus": 4 * gpus}
    limit = None if hours is None else hours * 3600
    return Partition(
        name, max_time_seconds=limit, gpus_per_node=gpus, cpus_per_node=cpus, memory_per_node=memory * GIB, **plain | facts
    )  # fmt: skip


CLUSTER = {
    p.name: p for p in (partition("gpu", 24, 4), partition("cpu", 24, default=True), partition("special", 168, 2))
}


def draft(cluster: dict[str, Partition] | None = CLUSTER, *, mail: str | None = None, **facts) -> Draft:
    ask = GenerateScript(**{"name": "train", "command": "python train.py"} | facts)
    return compose(ask, partitions=cluster, limits=LIMITS, mail_user=mail, now=NOW, suffix="a1b2c3")


def options(found: Draft) -> dict[str, str | None]:
    read = read_directives(found.script.encode(), "x")
    assert read.problems == []
    return {d.option: d.value for d in read.directives}


def picked(found: Draft, *names: str) -> tuple[str | None, ...]:
    read = options(found)
    return tuple(read.get(name) for name in names)


def test_a_plain_command_gets_the_defaults_and_a_reason_for_every_number():
    found = draft()

    assert options(found) == {
        "job-name": "train", "partition": "gpu", "nodes": "1", "ntasks": "1", "gpus": "1", "cpus-per-task": "8",
        "mem-per-gpu": "16G", "time": "02:00:00", "output": "logs/slurm/%x-%j.out", "error": "logs/slurm/%x-%j.err",
    }  # fmt: skip
    assert found.script.startswith("#!/bin/bash\n#SBATCH ")
    assert found.script.endswith("\nset -euo pipefail\n\npython train.py\n")
    assert found.file_name == "train-20260301-120005-a1b2c3.sh"
    for number in ("GPUs: 1", "Time: 02:00:00", "Memory: 16G", "Partition: gpu", "Nodes: 1", "CPUs: 8"):
        assert any(reason.startswith(number) for reason in found.reasons), number


def test_a_kind_of_gpu_stands_before_its_number():
    assert picked(draft(gpu_type="a100", gpus=2), "gpus") == ("a100:2",)
    assert picked(draft(gpu_type="a100", gpus=8, distributed=True), "gpus-per-node") == ("a100:4",)
    assert picked(draft(gpu_type="a100", gpus=0), "gpus", "gpus-per-node") == (None, None)
    for kind in ("a100 --mem=0", "a100:8", "a100\nx", "", "-a"):
        with pytest.raises(InputError, match="gpu_type"):
            draft(gpu_type=kind)


def test_work_without_gpus_goes_where_no_gpu_lies_idle():
    assert picked(draft(gpus=0), "partition", "gpus", "mem", "mem-per-gpu", "cpus-per-task") == (
        "cpu", None, "16G", None, "4"
    )  # fmt: skip


def test_a_data_size_becomes_three_times_that_plus_a_fifth_in_whole_g():
    assert picked(draft(gpus=0, data_size="4G"), "mem") == ("15G",)
    assert picked(draft(gpus=2, data_size="4G"), "mem-per-gpu") == ("8G",)
    assert picked(draft(gpus=0, data_size="10M"), "mem") == ("1G",)


def test_memory_as_asked_is_shared_by_the_gpus_and_never_more_than_a_node_has():
    assert picked(draft(gpus=2, memory="40G"), "mem-per-gpu") == ("20G",)
    found = draft(gpus=0, data_size="400G")
    assert picked(found, "mem") == ("128G",)
    assert any("lowered to 128G" in reason for reason in found.reasons)
    assert picked(draft({"gpu": partition("gpu", 24, 4, memory=32)}, gpus=4), "mem-per-gpu") == ("8G",)


def test_cpus_are_four_to_eight_a_gpu_and_never_more_than_a_node_has():
    for cpus, each in ((8, 2), (16, 4), (24, 6), (96, 8)):
        assert picked(draft({"gpu": partition("gpu", 24, 4, cpus=cpus)}, gpus=4), "cpus-per-task") == (str(4 * each),)


def test_a_long_job_goes_to_the_partition_that_allows_it():
    assert picked(draft(time_limit="2-00:00:00"), "partition", "time") == ("special", "2-00:00:00")
    assert picked(draft(gpus=0, time_limit="30:00:00"), "partition") == ("special",)
    renamed = {
        p.name: p for p in (partition("a100", 24, 4), partition("batch", 24, default=True), partition("long", None, 2))
    }
    assert picked(draft(renamed), "partition") == ("a100",)
    assert picked(draft(renamed, gpus=0), "partition") == ("batch",)
    assert picked(draft(renamed, time_limit="2-0"), "partition") == ("long",)


def test_the_time_budget_bounds_the_time():
    assert picked(draft(time_budget="90"), "time") == ("01:30:00",)
    assert picked(draft(time_limit="30", time_budget="90"), "time") == ("00:30:00",)
    assert picked(draft({"gpu": partition("gpu", 1, 4)}), "time") == ("01:00:00",)


def test_without_a_cluster_the_rules_names_are_used_and_said_to_be_so():
    found = draft(None)

    assert picked(found, "partition", "cpus-per-task") == ("gpu", "4")
    assert any("could not be asked" in reason for reason in found.reasons)
    assert picked(draft(None, time_limit="2-0"), "partition") == ("special",)
    assert picked(draft(None, gpus=0), "partition") == ("cpu",)


def test_a_cluster_without_gpus_gets_no_gpu_job_unless_asked():
    cluster = {"cpu": partition("cpu", 24, default=True)}

    assert picked(draft(cluster), "gpus", "partition") == (None, "cpu")
    with pytest.raises(InputError, match="gpus: 1 are more than any partition offers"):
        draft(cluster, gpus=1)


def test_arrays_mail_checkpoints_and_setup_are_written_where_asked():
    found = draft(
        mail="a@example.org", array="0-9%2", setup=["module load cuda", "source venv/bin/activate"],
        checkpoint={"dir": "ckpt/it's", "resume_from": "ckpt/last.pt"},
    )  # fmt: skip
    body = found.script.partition("\n\n")[2]

    assert picked(found, "array", "output", "mail-type", "mail-user") == (
        "0-9%2", "logs/slurm/%x-%A_%a.out", "END,FAIL", "a@example.org"
    )  # fmt: skip
    assert body == (
        "set -euo pipefail\n\n"
        "set +u\nmodule load cuda\nsource venv/bin/activate\nset -u\n\n"
        'export CHECKPOINT_DIR=\'ckpt/it\'"\'"\'s\'/"$SLURM_ARRAY_TASK_ID"\nmkdir -p "$CHECKPOINT_DIR"\n'
        "# The newest checkpoint that an earlier run left; empty for the first run.\n"
        "RESUME_FROM=$(find ckpt -maxdepth 1 -name last.pt -printf '%T@ %p\\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)\n"
        "export RESUME_FROM\n\npython train.py\n"
    )
    assert picked(draft(), "mail-type", "mail-user") == (None, None)


@pytest.mark.parametrize("name", ["a b", 'a"b', "a'b", "a\\b", "a#b", "a|b", "$(x)", "a --mem=900G", "-x", "größe"])
def test_an_odd_job_name_reaches_slurm_as_it_is(name):
    found = draft(name=name)

    assert options(found)["job-name"] == name
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]*-20260301-120005-a1b2c3\.sh", found.file_name)
    assert re.fullmatch(r"logs/slurm/[A-Za-z0-9._%-]+\.out", str(options(found)["output"]))


def test_a_command_of_several_lines_is_kept_as_it_is():
    assert draft(command="cd x\nfor i in 1 2; do\n\techo $i\ndone").script.endswith(
        "\ncd x\nfor i in 1 2; do\n\techo $i\ndone\n"
    )


@pytest.mark.parametrize(
    ("field", "facts"),
    [
        ("name", {"name": "a\n#SBATCH --mem=900G"}),
        ("name", {"name": " "}),
        ("name", {"name": "x" * 300}),
        ("command", {"command": " \n"}),
        ("command", {"command": "a\rb"}),
        ("setup[1]", {"setup": ["true", "a\nb"]}),
        ("checkpoint.dir", {"checkpoint": {"dir": "a\0b"}}),
        ("array", {"array": "9-0"}),
        ("memory", {"memory": "1.5G"}),
        ("memory", {"memory": "0"}),
        ("data_size", {"data_size": "big"}),
        ("time_limit", {"time_limit": "soon"}),
        ("time_limit", {"time_limit": "UNLIMITED"}),
        ("time_limit", {"time_limit": "30-0"}),
        ("time_limit", {"time_limit": "2-0", "partition": "gpu"}),
        ("time_budget", {"time_budget": "0"}),
        ("partition", {"partition": "nope"}),
        ("gpus", {"gpus": 8}),
        ("gpus", {"gpus": 99, "distributed": True}),
        ("cpus", {"gpus": 4, "cpus": 2, "distributed": True}),
        ("cpus", {"gpus": 0, "cpus": 1, "nodes": 2, "launcher": "srun"}),
        ("nodes", {"nodes": 2}),
        ("nodes", {"gpus": 8, "nodes": 1, "launcher": "srun"}),
        ("gpus", {"gpus": 5, "launcher": "srun"}),
        ("command", {"command": "cd x && torchrun t.py", "launcher": "torchrun"}),
        ("command", {"command": "torchrun", "launcher": "torchrun"}),
        ("command", {"command": "torchrun --tee 3 --nproc_per_node=4 t.py", "launcher": "torchrun"}),
        ("command", {"command": "python -W error t.py", "launcher": "torchrun"}),
        ("command", {"command": "deepspeed --include localhost:0 t.py", "launcher": "deepspeed"}),
        ("command", {"command": "mpirun a.out", "launcher": "mpi", "checkpoint": {"dir": "c", "signal_before": "5m"}}),
        ("command", {"launcher": "torchrun", "checkpoint": {"dir": "c", "signal_before": "5m"}}),
        ("command", {"command": "cd x && python t.py", "checkpoint": {"dir": "c", "signal_before": "5m"}}),
        ("checkpoint.signal_before", {"checkpoint": {"dir": "c", "signal_before": "soon"}}),
        ("checkpoint.signal_before", {"checkpoint": {"dir": "c", "signal_before": "2h"}}),
        ("justification", {"justification": "a\nb"}),
        ("cpus", {"cpus": 64}),
    ],
)
def test_what_no_script_can_ask_for_is_refused_by_its_field(field, facts):
    with pytest.raises(InputError) as caught:
        draft(**facts)
    assert caught.value.field == field
    assert caught.value.hint


@pytest.mark.proves("generated-scripts-pass")
@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"gpus": 0, "data_size": "4G"},
        {"gpus": 4, "distributed": True, "command": "cd x && python t.py 'a'"},
        {"gpus": 4, "launcher": "torchrun"},
        {"gpus": 4, "launcher": "accelerate", "nodes": 2},
        {"gpus": 4, "launcher": "deepspeed", "checkpoint": {"dir": "c", "resume_from": "*.pt", "signal_before": "5m"}},
        {"gpus": 0, "launcher": "mpi", "command": "./a.out", "nodes": 2},
        {"gpus": 8, "launcher": "srun", "justification": "scaling is what the experiment measures"},
        {"array": "0-3%2", "setup": ["module load cuda"], "checkpoint": {"dir": "ck pt"}},
        {"name": 'a|b "c"', "command": "cd x\nfor i in 1 2; do echo $i; done"},
    ],
)
async def test_the_guard_lets_ordinary_generated_scripts_pass(facts):
    script = draft(**facts).script
    path = "/tmp/project/scripts/slurm/generated/x.sh"
    reading = await read_script(script.encode(), path, project="/tmp/project", files=LocalFiles())
    context = EvaluationContext(
        POLICY, "/tmp/project", tool="generate_script", partitions=CLUSTER, path=path, size=len(script)
    )

    decision = evaluate(reading, context)

    assert pins(reading.request, POLICY.policy, CLUSTER) == ()
    assert decision.verdict == "allow", format_refusal(decision)


DECISION = Decision(
    id="d1",
    verdict="approve",
    policy=PolicyUsed(version="1", sha256="ab"),
    rules=(
        RuleDecision(id="gpus", outcome="pass", message="fine"),
        RuleDecision(
            id="memory-per-gpu", outcome="approve", message="Too much.\nrm -rf \x1b[31m\udce9", remedy="Write:\n#SBATCH --mem=16G"
        ),
    ),
)  # fmt: skip


def test_the_script_for_a_person_carries_the_verdict_as_comments_only():
    script = "#!/bin/bash\n#SBATCH --mem=32G\n\nexport A=1\npython x.py \udce9\n"
    found = fallback(script, DECISION, blocker="approval", now=NOW)
    first, *rest = found.split("\n")
    added = [line for line in rest if line not in script.split("\n")]

    assert first == "#!/bin/bash"
    assert found.endswith("#SBATCH --mem=32G\n\nexport A=1\npython x.py \udce9\n")
    assert all(line.startswith("# ") and line.isprintable() for line in added)
    assert "# memory-per-gpu (approve): Too much." in added
    assert "#   #SBATCH --mem=16G" in added
    assert not any("gpus (pass)" in line for line in added)
    before = read_directives(script.encode("utf-8", "surrogateescape"), "x").directives
    after = read_directives(found.encode("utf-8", "surrogateescape"), "x").directives
    assert [(d.option, d.value) for d in after] == [(d.option, d.value) for d in before]


def test_a_python_scripts_encoding_line_stays_in_the_first_two():
    found = fallback("#!/usr/bin/python3\n# -*- coding: latin-1 -*-\nx = 1\n", DECISION, blocker="approval", now=NOW)

    assert found.split("\n")[1] == "# -*- coding: latin-1 -*-"
    assert found.endswith("\nx = 1\n")


def test_a_script_of_one_line_keeps_it():
    assert fallback("#!/bin/true", DECISION, blocker="policy", now=NOW).startswith("#!/bin/true\n# slurm-agent-tools")


# --- from earlier runs -----------------------------------------------------------------------------------------------


def ran(number: int, *, gpus: int = 0, memory: int = 3 * GIB, seconds: int = 3000, **facts: object) -> list[JobRecord]:
    """Runs of a job of 8 CPUs that kept 2 of them busy."""
    usage = Usage(
        elapsed_seconds=seconds,
        memory_peak_bytes=memory,
        cpu_seconds=2.0 * seconds,
        cpu_allocated_seconds=8.0 * seconds,
    )
    asked = Resources(partition="cpu", nodes=1, cpus=8, gpus=gpus, memory_bytes=16 * GIB, time_limit_seconds=7200)
    plain = {
        "cluster": "c", "project": "/p", "user": "u", "name": "train", "script_path": "s", "script_sha256": "x",
        "requested": asked, "submitted": NOW, "state": "COMPLETED", "usage": usage,
    }  # fmt: skip
    return [JobRecord(job_id=str(job), **plain | facts) for job in range(number)]


def from_runs(records: list[JobRecord], **facts: object) -> Draft:
    ask = GenerateScript(**{"name": "train", "command": "python train.py", "gpus": 0} | facts)
    return compose(
        ask, partitions=CLUSTER, limits=LIMITS, mail_user=None, now=NOW, suffix="a1b2c3", records=records
    )  # fmt: skip


def test_numbers_come_from_what_runs_of_this_name_used_and_say_so():
    found = from_runs(ran(12))

    memory, time, cpus = picked(found, "mem", "time", "cpus-per-task")
    assert (memory, time, cpus) == ("3636M", "01:00:00", "2")
    told = [reason for reason in found.reasons if "12 runs of this name" in reason]
    assert [reason.split(":")[0] for reason in told] == ["Time", "Memory", "CPUs"]


def test_what_is_asked_for_goes_before_what_runs_used():
    found = from_runs(ran(12), memory="8G", time_limit="2:00:00", cpus=3)

    assert picked(found, "mem", "time", "cpus-per-task") == ("8G", "02:00:00", "3")
    assert not any("runs of this name" in reason for reason in found.reasons)


def test_the_size_of_the_data_goes_before_what_runs_used():
    assert picked(from_runs(ran(12), data_size="1G"), "mem") == ("4G",)


def test_too_few_runs_and_runs_with_other_gpus_change_nothing():
    plain = picked(from_runs([]), "mem", "time", "cpus-per-task")

    assert picked(from_runs(ran(4)), "mem", "time", "cpus-per-task") == plain
    assert picked(from_runs(ran(12, gpus=2)), "mem", "time", "cpus-per-task") == plain


def test_memory_of_runs_with_gpus_is_shared_by_them():
    assert picked(from_runs(ran(12, gpus=2), gpus=2), "mem-per-gpu") == ("1818M",)


def test_a_budget_that_runs_did_not_keep_is_told():
    found = from_runs(ran(12), time_budget="1500s")

    assert picked(found, "time") == ("00:25:00",)
    assert "That may be too short: of 12 runs 5 % took 00:50:00 or longer." in found.reasons


def test_a_budget_longer_than_the_runs_leaves_their_time():
    assert picked(from_runs(ran(12), time_budget="10:00:00"), "time") == ("01:00:00",)
