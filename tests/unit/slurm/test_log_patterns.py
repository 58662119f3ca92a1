"""Where the files of --output and --error are, as Slurm spells them (sbatch(1), filename pattern)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from slurm_agent_tools.models.job import Job
from slurm_agent_tools.slurm.log_patterns import expand, spellings
from slurm_agent_tools.units import parse_job_id

JOB = Job(parse_job_id("7"), "train", "RUNNING", ("squeue",), user="ada", nodes="gpu[03-05].lab.org,cpu1")
TASK = replace(JOB, job_id=parse_job_id("7_13"), raw_id=9)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("%A %a %b %j %J", "7 4294967294 4 7 7"),
        ("%x-%u-%s-%n-%t-%%", "train-ada-batch-0-0-%"),
        ("%N", "gpu03"),
        ("%4j %04j %0j", "0007 0007 7"),
        ("%10j %12j", "0000000007 0000000007"),
        ("%9x", "train"),
        ("%q %", "%q %"),
        ("a\\%j", "a%j"),
        ("\\a\\\\b%j", "a\\b%j"),
    ],
)
def test_a_pattern_is_what_slurm_makes_of_it(pattern, path):
    assert expand(pattern, JOB) == path


@pytest.mark.parametrize(("pattern", "path"), [("%A_%a", "7_13"), ("%b", "3"), ("%j %J", "9 9"), ("%3b", "003")])
def test_a_task_has_its_own_number_and_that_of_its_array(pattern, path):
    assert expand(pattern, TASK) == path


@pytest.mark.parametrize(
    ("nodes", "name"),
    [("cpu1", "cpu1"), ("cpu[2,4]", "cpu2"), ("a1,b2", "a1"), ("n1.x.org", "n1"), ("", ""), (None, "")],
)
def test_the_first_node_is_named_without_its_domain(nodes, name):
    assert expand("%N", replace(JOB, nodes=nodes)) == name


def test_a_job_of_nobody_known_has_no_user_in_its_path():
    assert expand("%u.out", replace(JOB, user=None)) == ".out"


def test_a_path_without_a_folder_lies_where_the_job_started():
    here = replace(JOB, work_dir="/p/x")
    assert spellings("../logs/%j.out", here) == ["/p/logs/7.out", "/p/logs/%j.out"]
    assert spellings("/logs/7.out", here) == ["/logs/7.out"]
    assert spellings("a.out", JOB) == ["a.out"]


def test_the_letter_that_an_older_slurm_leaves_is_tried_too():
    assert spellings("%A-%b", TASK) == ["7-3", "7-%b", "%A-%b"]


def test_a_script_of_standard_input_has_no_name_in_its_path():
    unnamed = replace(JOB, name="sbatch")
    assert spellings("sbatch/%x-%j", unnamed)[:4] == ["sbatch/sbatch-7", "sbatch/%x-%j", "sbatch/(null)-7"]
    assert "(null)" not in "".join(spellings("train-%j", JOB))
