"""What a request may get at most where its options mean more together than each alone."""

from __future__ import annotations

import pytest

from slurm_agent_tools.models.geometry import more_together
from slurm_agent_tools.models.request import JobRequest
from slurm_agent_tools.scripts.directive_lines import words_to_directives
from slurm_agent_tools.scripts.effective_request import effective, resolve

GIB = 2**30


def asked(words: str) -> JobRequest:
    request = effective(words_to_directives([*words.split(), "--time=5"], "argument"))
    assert not request.problems
    return request


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("--gpus=1 --ntasks-per-core=60 --cpus-per-gpu=1", ["ntasks-per-core", "cpus-per-gpu"]),
        ("--gpus=1 --ntasks-per-socket=8 --mem-per-cpu=1G", ["ntasks-per-socket", "mem-per-cpu"]),
        ("--gpus=1 --ntasks-per-socket=8 --mem=1G", []),
        ("--ntasks-per-socket=8 --mem-per-cpu=1G", []),
        ("--gpus-per-task=h100:4 --cpus-per-gpu=1", ["gpus-per-task", "cpus-per-gpu"]),
        ("--gpus-per-task=4 --cpus-per-gpu=1", []),
        ("--ntasks=1 --gpus=4 --gpus-per-node=2", ["gpus", "gpus-per-node"]),
        ("--ntasks=2 --gpus=4 --gpus-per-node=2", []),
        ("--gpus=4 --gpus-per-node=2", []),
        ("--gpus-per-task=h100:4", []),
        ("--nodelist=a,z --contiguous", ["contiguous", "nodelist"]),
        ("--contiguous", []),
        ("--dependency=afterany:1 --deadline=now+75", ["deadline", "dependency"]),
        ("--deadline=now+75", []),
        ("--ntasks=6 --ntasks-per-gpu=1 --gpus-per-node=2", ["ntasks-per-gpu", "ntasks"]),
        ("--ntasks=6 --ntasks-per-gpu=1 --gpus-per-node=2 --nodes=3", []),
        ("--ntasks=2 --ntasks-per-gpu=1 --gpus-per-node=2", []),
        ("--ntasks=1 --ntasks-per-gpu=3", ["ntasks-per-gpu"]),
        ("--ntasks=6 --ntasks-per-gpu=3", ["ntasks-per-gpu"]),
        ("--ntasks=4 --ntasks-per-node=1 --nodes=1 --gpus-per-task=1", ["ntasks", "ntasks-per-node"]),
        ("--ntasks=1 --ntasks-per-node=4 --nodes=1 --gpus-per-task=1", ["ntasks", "ntasks-per-node"]),
        ("--ntasks=7 --ntasks-per-node=4 --gpus-per-task=1", ["ntasks", "ntasks-per-node"]),
        ("--ntasks=8 --ntasks-per-node=4 --gpus-per-task=1", []),
        ("--ntasks=8 --ntasks-per-node=4 --nodes=2 --gpus-per-task=1", []),
        ("--ntasks-per-node=4 --nodes=2 --gpus-per-task=1", []),
        ("--ntasks=7 --ntasks-per-node=4", []),
        ("--ntasks=6 --nodes=2 --gpus-per-task=1 --cpus-per-gpu=2", ["gpus-per-task", "cpus-per-gpu"]),
        ("--ntasks=2 --gpus-per-task=1 --cpus-per-gpu=1", ["gpus-per-task", "cpus-per-gpu"]),
        ("--ntasks=6 --nodes=1 --gpus-per-task=1 --cpus-per-gpu=2", []),
        ("--ntasks=2 --nodes=2 --gpus-per-task=1 --cpus-per-gpu=2", []),
        ("--ntasks=6 --nodes=2 --ntasks-per-node=3 --gpus-per-task=1 --cpus-per-gpu=2", []),
        ("--ntasks=6 --nodes=2 --gpus-per-task=1 --cpus-per-task=2", []),
        ("--ntasks=3 --ntasks-per-node=1 --nodes=2 --gpus=2 --cpus-per-gpu=3", ["ntasks", "ntasks-per-node"]),
        ("--ntasks=3 --ntasks-per-node=1 --nodes=3 --gpus=2 --cpus-per-gpu=3", []),
        ("--ntasks=3 --ntasks-per-node=1 --nodes=2 --gpus=2", []),
        ("--ntasks=3 --ntasks-per-node=1 --gpus=2 --cpus-per-gpu=3", []),
        ("--ntasks=1 --ntasks-per-gpu=3 --gpus=1", []),
        ("--ntasks=2 --ntasks-per-node=1 --distribution=plane=2 --cpus-per-gpu=7", ["cpus-per-gpu"]),
        ("--cpus-per-gpu=7 --gpus=0", ["cpus-per-gpu"]),
        ("--cpus-per-gpu=7 --gres=gpu:1", []),
        ("--gpus-per-node=3 --ntasks-per-gpu=2", ["ntasks-per-gpu", "gpus-per-node"]),
        ("--gpus-per-node=3 --ntasks-per-gpu=2 --nodes=1", []),
    ],
)
def test_options_that_take_more_together_are_named(words: str, named: list[str]):
    assert [name for options, *_ in more_together(asked(words)) for name in options] == named


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ("--gpus=2 --ntasks=1 --mem=32G", 16),
        ("--gpus=2 --ntasks=1 --mem=32G --distribution=cyclic", 16),
        ("--gpus=2 --ntasks=1 --mem=32G --distribution=cyclic:block", 32),  # 24.11: a GPU on each of two nodes
        ("--gpus=2 --ntasks=1 --mem=32G --distribution=cyclic:block --nodes=1", 16),
        ("--gpus=4 --gpus-per-task=1 --nodes=1 --mem=64G", 16),
        ("--gpus=4 --gpus-per-task=1 --nodes=1 --mem=64G --cpus-per-task=4", 64),  # 22.05: one GPU
        ("--gpus=4 --nodes=2 --cpus-per-gpu=8 --mem-per-cpu=1G", 24),  # 24.11, 26.05: three GPUs on a node and one
        ("--gpus=4 --nodes=2 --nodelist=a,b,c,d --cpus-per-gpu=8 --mem-per-cpu=1G", 24),
    ],
)
def test_memory_of_a_gpu_is_that_of_the_worst_place(words: str, size: int):
    assert resolve(asked(words), {}).memory_per_gpu_bytes == size * GIB
