from __future__ import annotations

import pytest

from slurm_agent_tools.models.sbatch_options import NAMES, find_long

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
