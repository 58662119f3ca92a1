"""How much memory and how many CPUs a job is asked for, each with its reason. Pure."""

from __future__ import annotations

from slurm_agent_tools.catalogue import GenerateScript
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.history.sizing import Advice
from slurm_agent_tools.model import Partition
from slurm_agent_tools.policy.document import Limits
from slurm_agent_tools.sizing.times import rests_on
from slurm_agent_tools.units import human_memory, parse_memory

_GIB = 2**30
_MEMORY = 16 * _GIB
_CPUS_MIN, _CPUS_MAX, _CPUS_ALONE = 4, 8, 4


def memory(ask: GenerateScript, gpus: int, limits: Limits, runs: Advice, reasons: list[str]) -> int:
    """Bytes per GPU, or for the whole job without GPUs."""
    unit = "per GPU" if gpus else "on the node"
    if ask.memory is not None:
        share = -(-size_of("memory", ask.memory) // max(1, gpus) // 2**20) * 2**20
        reasons.append(f"Memory: {human_memory(share)} {unit}, as asked ({ask.memory} in all).")
        return share
    if ask.data_size is not None:
        total = -(-size_of("data_size", ask.data_size) * 18 // 5)  # x 3 for loading, work and output, and 20 %
        share = max(1, -(-total // max(1, gpus) // _GIB)) * _GIB
        reasons.append(f"Memory: {human_memory(share)} {unit}, 3 times {ask.data_size} of data plus 20 %.")
        return share
    if runs.memory.recommended is not None:
        share = -(-runs.memory.recommended // max(1, gpus) // 2**20) * 2**20
        reasons.append(f"Memory: {human_memory(share)} {unit}, {rests_on(runs.memory, runs)}.")
        return share
    bands = limits.memory_per_gpu if gpus else limits.memory_without_gpus
    share = min(_MEMORY, bands.free)
    reasons.append(f"Memory: {human_memory(share)} {unit}, the default.")
    return share


def size_of(field: str, text: str) -> int:
    """Bytes. Raises InputError."""
    try:
        number = parse_memory(text)
    except ValueError as error:
        raise InputError(field, text, "is not a size", hint="Write 512M, 16G or 1T.") from error
    if number == 0:
        raise InputError(field, text, "is nothing; to Slurm it means a whole node", hint="Write 512M, 16G or 1T.")
    return number


def capped(need: int, gpus: int, on_node: int, partition: Partition | None, reasons: list[str]) -> int:
    """No more than a node has."""
    has = node_memory(partition)
    most = has // max(1, on_node) // 2**20 * 2**20 if gpus else has
    if not has or need <= most:
        return need
    unit = "GPU" if gpus else "node"
    reasons.append(f"Memory lowered to {human_memory(most)}: a {unit} of this partition has no more.")
    return most


def node_memory(partition: Partition | None) -> int:
    """What one node can give a job; 0 where it is not known."""
    if partition is None:
        return 0
    return min((known for known in (partition.memory_per_node, partition.max_mem_per_node) if known), default=0)


def cpus(
    ask: GenerateScript, gpus: int, on_node: int, partition: Partition | None, runs: Advice, reasons: list[str]
) -> int:
    """CPUs of the whole job."""
    has = partition.cpus_per_node if partition is not None else 0
    if ask.cpus is not None:
        _enough(ask.cpus, ask, gpus, has)
        reasons.append(f"CPUs: {ask.cpus}, as asked.")
        return ask.cpus
    if runs.cpus.recommended is not None:
        number = max(runs.cpus.recommended, gpus if ask.distributed else 1)
        reasons.append(f"CPUs: {number}, from {runs.cpus.runs} runs of this name: as many as 95 % of them kept busy.")
        return min(number, has) if has and not ask.distributed else number
    if not gpus:
        number = min(_CPUS_ALONE, has or _CPUS_ALONE)
        reasons.append(f"CPUs: {number}, the default without GPUs.")
        return number
    each, why = _CPUS_MIN, "the default"
    if has and partition is not None:
        each = min(_CPUS_MAX, max(_CPUS_MIN, has // max(1, partition.gpus_per_node)))
        each = min(each, max(1, has // max(1, on_node)))
        why = f"of the {has} that a node has for its {partition.gpus_per_node} GPUs"
    reasons.append(f"CPUs: {each} per GPU, {why}.")
    return each * gpus


def _enough(cpus: int, ask: GenerateScript, gpus: int, has: int) -> None:
    if ask.distributed and cpus < gpus:
        problem = f"are fewer than the {gpus} GPUs, and each has a process of its own"
        raise InputError("cpus", cpus, problem, hint=f"Ask for at least {gpus}.")
    if has and cpus > has and not ask.distributed:
        problem = f"are more than the {has} of one node, and one process uses one node only"
        raise InputError("cpus", cpus, problem, hint=f"Ask for at most {has}.")
