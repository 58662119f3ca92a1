"""Our reading beside what sbatch 22.05 was seen to print for the same options."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.policy.sbatch_crosscheck import differences
from slurm_agent_tools.scripts.directive_lines import read_directives, words_to_directives
from slurm_agent_tools.scripts.effective_request import effective

ASKED = {"test-only": "set", "verbose": "1"}


def request(line: str) -> JobRequest:
    found = read_directives(f"#!/bin/bash\n#SBATCH {line}\n".encode(), "job.sh")
    assert not found.problems
    return effective(found.directives)


SAME = [
    ("--mem=16G", {"mem": "16G"}),
    ("--mem=1500M", {"mem": "1500"}),
    ("--mem=16777217K", {"mem": "16385"}),
    ("--mem=2048", {"mem": "2G"}),
    ("--mem=4096T", {"mem": "4P"}),
    ("--mem=0", {"mem": "0?"}),
    ("--mem-per-cpu=+1g", {"mem-per-cpu": "1G"}),
    ("-t 90:30", {"time": "01:31:00"}),
    ("-t 1-2", {"time": "1-02:00:00"}),
    ("-t 0", {"time": "UNLIMITED"}),
    ("-n +4 -c 08", {"ntasks": "4", "cpus-per-task": "8"}),
    ("--tasks-per-node=3", {"ntasks-per-node": "3"}),
    ("-N 3-3", {"nodes": "3"}),
    ("-N 1k-2k", {"nodes": "1024-2048"}),
    ("-N4 -n2", {"nodes": "2", "ntasks": "2"}),
    ("-N1-3 -n2", {"nodes": "1-2", "ntasks": "2"}),
    ("-w n[1-2] -n1", {"nodelist": "n1", "ntasks": "1"}),
    ("--gres=gpu:a100:2,lustre:1", {"gres": "gres:gpu:a100:2,gres:lustre:1"}),
    ("--gres=gres:gpu:2", {"gres": "gres:gpu:2"}),
    ("--gres=gpu:2", {"gres": "gres/gpu:2"}),
    ("--gres=none", {"gres": "none"}),
    ("--gpus=a100:2,h100:1", {"gpus": "a100:2,h100:1"}),
    ("--gpus-per-task=a100:2,h100:1", {"gpus-per-task": "h100:1,a100:2"}),
    ("--gpus-per-task=0", {"gpus-per-task": "(null)"}),
    ("-a [0-20:5]%2", {"array": "[0-20:5]%2"}),
    ("-o x/%j.out", {"output": "/p/x/%j.out"}),
    ("-o /dev/null -e none", {"output": "/dev/null", "error": "/dev/null"}),
    ("-D none", {"chdir": "/p/none"}),
    ("--requeue --no-requeue", {"requeue": "no-requeue", "no-requeue": "no-requeue"}),
    ("--exclusive", {"exclusive": "exclusive"}),
    ("--exclusive=USER -s", {"exclusive": "oversubscribe", "oversubscribe": "oversubscribe"}),
    ("-H -k --nice --propagate", {"hold": "set", "no-kill": "set", "nice": "100", "propagate": "ALL"}),
    ("-koff", {"no-kill": "unset"}),
    ("-B *:8", {"extra-node-info": ":8"}),
    ("-B 2:*:1 --cores-per-socket=5", {"extra-node-info": "2:5:1", "cores-per-socket": "5"}),
    ("--cores-per-socket=5 -B *", {"extra-node-info": "unset", "cores-per-socket": "-2"}),
    ("--mincpus=2 -c4", {"mincpus": "4", "cpus-per-task": "4"}),
    ("--hint=nomultithread --ntasks-per-core=1", {"ntasks-per-core": "1"}),
    ("--signal=B:10@30", {"signal": "B:USR1@30"}),
    ("--signal=B:TERM --signal=USR1@60", {"signal": "B:USR1"}),
    ("--switches=2@10", {"switches": "2@00:10:00"}),
    ("--open-mode=append", {"open-mode": "a"}),
    ("--begin=now+60", {"begin": "1795250389"}),
    ("--mail-type=ALL", {"mail-type": "INVALID_DEPEND,BEGIN,END,FAIL,REQUEUE,STAGE_OUT"}),
    ("--wrap=x --quiet", {}),
    ("--comment='a  b'", {"comment": "a  b"}),
    ("--test-only --verbose", {}),
]


@pytest.mark.parametrize(("line", "shown"), SAME, ids=[line for line, _ in SAME])
def test_what_sbatch_shows_in_a_form_of_its_own_is_no_difference(line: str, shown: dict[str, str]):
    assert differences(request(line), ({**ASKED, **shown},)) == []


OTHER = [
    ("--mem=16G", {"mem": "64G"}),
    ("--mem=16G", {"mem": "16"}),
    ("--mem=16G", {}),
    ("--mem=16G", {"mem-per-cpu": "16G"}),
    ("-n2", {"ntasks": "2", "gres": "gres:gpu:4"}),
    ("-n2", {"ntasks": "2", "site-option": "x"}),
    ("-n2", {"ntasks": "2x"}),
    ("-N2", {"nodes": "2-4"}),
    ("-w n[1-2] -n1", {"nodelist": "n[1-2]", "ntasks": "1"}),
    ("-t 20", {"time": "20:00:00"}),
    ("--gres=gpu:2", {"gres": "gres:gpu:4"}),
    ("--gpus=a100:2", {"gpus": "2"}),
    ("-a 0-9%4", {"array": "0-9"}),
    ("--no-requeue", {"no-requeue": "requeue"}),
    ("-o a.out", {"output": "/p/b.out"}),
    ("-o /a.out", {"output": "/p/a.out"}),
    ("--comment=x", {"comment": "x "}),
    ("--signal=USR1", {"signal": "USR1@300"}),
    ("-p cpu", {"partition": "gpu"}),
]


@pytest.mark.parametrize(("line", "shown"), OTHER, ids=[f"{line} {shown}" for line, shown in OTHER])
def test_what_sbatch_reads_otherwise_is_named(line: str, shown: dict[str, str]):
    found = differences(request(line), ({**ASKED, **shown},))
    assert found
    assert all(text.startswith("--") and "sbatch" in text for text in found)


def test_an_answer_that_cannot_be_read_is_a_difference():
    [told] = differences(request("-n1"), None)
    assert "form that can be read" in told


def test_components_must_agree_in_number_and_are_never_taken_for_one():
    assert "0 components" in differences(request("-n1"), ())[0]
    assert "2 components" in differences(request("-n1"), ({}, {}))[0]
    assert "cannot be compared" in differences(replace(request("-n1"), components=2), ({}, {}))[0]


def test_a_value_with_a_line_break_could_be_anything():
    forged = "x\nsbatch: mem                 : 16G"
    made = effective(words_to_directives([f"--job-name={forged}"], "argument"))
    assert "line break" in differences(made, ({"job-name": "x", "mem": "16G"},))[0]


def test_a_lone_colon_on_the_command_line_is_refused():
    with pytest.raises(ValueError, match="component"):
        words_to_directives(["--job-name", ":", "--mem=1G"], "argument")
