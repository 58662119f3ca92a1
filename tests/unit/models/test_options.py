from __future__ import annotations

import pytest

from slurm_agent_tools.models.sbatch_options import NAMES, find_long, gpus, gres, per_task

PREFIXES = {
    "mem": "mem", "mem-per-c": "mem-per-cpu", "mem-per-g": "mem-per-gpu", "gpus": "gpus", "gpus-per-n": "gpus-per-node",
    "gpus-per-t": "gpus-per-task", "gpus-per-s": "gpus-per-socket", "gres": "gres", "cpus-per-t": "cpus-per-task",
    "cpus-per-g": "cpus-per-gpu", "ntasks": "ntasks", "ntasks-per-n": "ntasks-per-node", "ntasks-per-g": "ntasks-per-gpu",
    "ta": "ntasks-per-node", "nodes": "nodes", "nodel": "nodelist", "time": "time", "ar": "array", "exclus": "exclusive",
    "req": "requeue", "no-r": "no-requeue", "part": "partition", "mi": "mincpus", "bbf": "bbf", "ig": "ignore-pbs",
    "dep": "dependency", "overc": "overcommit", "overs": "oversubscribe", "ch": "chdir", "ge": "get-user-env", "ho": "hold",
    "ui": "uid", "gi": "gid", "tr": "tres-per-task", "rese": "reservation", "exte": "external", "se": "segment", "cluster": "clusters", "extra-": "extra-node-info",
}  # fmt: skip


@pytest.mark.parametrize(("word", "name"), PREFIXES.items(), ids=PREFIXES)
def test_a_prefix_means_the_option_that_some_version_finds(word: str, name: str):
    assert find_long(word).name == name


@pytest.mark.parametrize("word", ["me", "gpu", "gre", "n", "s", "", "mail", "ntasks-per", "cpus"])
def test_a_prefix_of_several_options_is_refused(word: str):
    with pytest.raises(ValueError, match=r"ambiguous|no option"):
        find_long(word)


@pytest.mark.parametrize(
    "word", ["prolog", "epilog", "pty", "mpi", "cpu-bind", "overlap", "exact", "jobid", "bcast", "memory"]
)
def test_an_option_of_another_command_is_refused(word: str):
    with pytest.raises(ValueError, match="no option"):
        find_long(word)


@pytest.mark.parametrize("name", sorted(NAMES - {"extra"}))
def test_every_option_is_found_by_its_whole_name(name: str):
    assert find_long(name).name == name


@pytest.mark.parametrize("text", ["8kb", "8KiB", "2066035336255469781kb", "8t", "8p", "a100:8kb", "+8", " 8", "-8"])
def test_a_number_of_gpus_with_a_unit_that_slurm_multiplies_by_is_no_type(text: str):
    with pytest.raises(ValueError, match="not a number of GPUs"):
        gpus(text)
    with pytest.raises(ValueError, match="not a number of GPUs"):
        gres(f"gpu:{text}")


def test_types_that_begin_with_digits_stay_types():
    assert [gpus(text) for text in ("2080ti", "4090d:2", "1g.5gb:2", "8k")] == [1, 2, 2, 8192]


def test_what_slurm_finds_within_a_word_is_refused():
    assert per_task("cpu=4,gres/gpu:a100:2,license/a=1") == (4, 2)
    for text in ("gresgpu:8", "cpu=1,xgres/gpu=8"):
        with pytest.raises(ValueError, match="not a list of resources per task"):
            per_task(text)


def test_types_that_slurm_takes_for_one_are_refused_since_the_last_of_them_counts():
    assert gpus("a100:2,h100:1") == 3
    for text in ("maaazaaaznmm:3,a100:1", "a100,maaazaaaznmm:3"):
        with pytest.raises(ValueError, match="takes two of the types of GPUs for one"):
            gpus(text)


def test_of_each_task_no_other_gres_is_read_than_gpus():
    """Beside the same one of --gres Slurm makes tasks of it."""
    with pytest.raises(ValueError, match="of no GPUs: ask for it with --gres"):
        per_task("cpu=1,gres/nvme=1")
