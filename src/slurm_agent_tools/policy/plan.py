"""What the policy judges: a plan, with what the cluster and the ledger say at the moment. Frozen records, no I/O.

The pins make it whole: what its script leaves open is stated on the command line before it is judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import TYPE_CHECKING

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.models.job_resources import Resources, named_jobs
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, Pin, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.scripts import effective_request
from slurm_agent_tools.units import format_duration, format_memory, human_memory

if TYPE_CHECKING:
    from slurm_agent_tools.backends.stages import Ladder
    from slurm_agent_tools.models.arguments import Stage


@dataclass(frozen=True, slots=True)
class PastRun:
    """What the ledger knows of an earlier submission by the same caller."""

    job_id: str
    script_path: str
    script_sha256: str
    job_name: str
    request_sha256: str
    submitted: datetime
    outcome: str | None = None  # Slurm's end state, None while unknown or active
    failed: bool | None = None
    category: str | None = None
    analysed: bool = False
    active: bool = False
    unseen: str | None = None  # why nobody here knows how it ended, where the accounting would


@dataclass(frozen=True, slots=True)
class LiveFacts:
    """Facts of the moment that the policy needs from the cluster and the ledger."""

    now: datetime
    partitions: Mapping[str, Partition]
    active_jobs: int  # running plus pending, arrays by what may run at once, chains once
    active: tuple[Job, ...] = ()
    status_read: datetime | None = None
    known_jobs: frozenset[str] = frozenset()  # ids named in --dependency that Slurm knows and has not forgotten
    ended_jobs: Mapping[str, str] = field(default_factory=dict)  # of those that it names: how they ended, FAILED
    takes_over: str | None = None  # the active job whose slot this one takes over by its dependency
    slots_after: int | None = None  # active_jobs with this job in it, see models.job_resources.count_slots
    history: tuple[PastRun, ...] = ()  # newest first
    pending_after: int | None = None  # pending jobs with this one, counted like the active ones
    submissions_today: int = 0  # of this user on this cluster in the last 24 hours, from the ledger
    gpu_hours_today: float = 0.0  # asked for by those that go on, used by those that are over
    cpu_hours_today: float = 0.0
    gpu_hours_of_work: float = 0.0  # of the same script with the same arguments in the last 24 hours, smoke runs aside
    cpu_hours_of_work: float = 0.0
    ladder: Ladder | None = None  # None: not asked, which only a job that smoke-first asks about is worth


@dataclass(frozen=True, slots=True)
class PlannedRequest:
    """What a writing tool is about to do, as the policy sees it. `live` None: rules that need it are not_evaluated.

    For `save_result` and `generate_script`: `path` is the file to write (absolute, links resolved), `size` its bytes.
    """

    tool: str
    project: str
    reading: ScriptReading | None = None
    resources: Resources = Resources()
    request_sha256: str | None = None
    justification: str | None = None
    live: LiveFacts | None = None
    partitions: Mapping[str, Partition] | None = None  # what the cluster offers, where no more than that was asked
    path: str | None = None
    path_exists: bool = False
    adds: bool = False  # what the file holds already stays as it is
    size: int | None = None
    problem: str | None = None  # why the script could not be read at all (rule script-exists)
    user: str | None = None
    today: date | None = None  # for exceptions that end; None: none counts
    stage: Stage | None = None
    hourly_price: float | None = None  # US dollars of all machines together, where some are rented for it


# --- Defaults put on the command line where a script is silent, and the one geometry that makes a request safe --------


_MIB = 2**20

_BARE_NICE = "100"  # --nice without a value (sbatch(1))

_DIGITS = 10  # of any niceness that Slurm takes


def pins(
    request: JobRequest, policy: Policy, partitions: Mapping[str, Partition] | None, priority: str | None = None
) -> tuple[Pin, ...]:
    """Options to add, in a fixed order. `partitions` None: no cluster is known, only what holds anywhere is added.

    Raises InputError for a priority that the policy does not offer.
    """
    chosen = effective_request.named(request, partitions)
    stated = _gpus(request)
    offered_by_all = bool(chosen) and all(partition.gpus_per_node for partition in chosen)
    gpus = stated if stated is not None else policy.defaults.gpus if offered_by_all else 0
    added: list[Pin | None] = []
    if gpus and stated is None:
        each = (request.nodes or 1) > gpus  # sbatch takes no fewer GPUs than nodes
        added.append(_gpu_pin(gpus, chosen, each=each))
        gpus *= (request.nodes or 1) if each else 1
    added += [_memory_pin(request, policy, chosen, gpus), _time_pin(request, policy, chosen)]
    if gpus:
        added.append(_nodes_pin(request, gpus, chosen, known=partitions is not None))
    if request.dependency:
        added.append(_dependency_pin(request.dependency))
    if priority is not None:
        added.append(_priority_pin(request, policy, priority))
    return tuple(pin for pin in added if pin is not None)


def _gpus(request: JobRequest) -> int | None:
    """GPUs that the request states, as far as they can be told; None where it states none."""
    if request.gpus is not None:
        return request.gpus
    nodes, tasks = request.nodes or 1, request.ntasks or request.nodes or 1
    per = ((request.gpus_per_node, nodes), (request.gpus_per_task, tasks), (request.gpus_per_socket, nodes))
    return max((way * times for way, times in per if way is not None), default=None)


def _gpu_pin(gpus: int, chosen: Sequence[Partition], *, each: bool) -> Pin:
    """So many in all, or on each node."""
    names = ", ".join(partition.name for partition in chosen)
    option = "--gpus-per-node" if each else "--gpus"
    return Pin(f"{option}={gpus}", f"no GPUs stated on partition {names}, whose nodes have GPUs")


def _memory_pin(request: JobRequest, policy: Policy, chosen: Sequence[Partition], gpus: int) -> Pin | None:
    if any(size is not None for size in (request.memory_per_node, request.memory_per_cpu, request.memory_per_gpu)):
        return None
    bands = policy.limits.memory_per_gpu if gpus else policy.limits.memory_without_gpus
    wanted = min(policy.defaults.memory, bands.free)
    if gpus and chosen and all(partition.exclusive for partition in chosen):
        # A site's plugin lets no other option in there.
        fewest = ((one, one.gpus_per_node_min or one.gpus_per_node or 1) for one in chosen)  # by which it is judged
        least = min(size for one, gpus in fewest for size in (wanted * gpus, _node_memory(one)) if size)
        return Pin(f"--mem={format_memory(least // _MIB * _MIB)}", "no memory stated, and the nodes are given whole")
    has = min((_share(request, partition, gpus) for partition in chosen if _node_memory(partition)), default=wanted)
    size = min(wanted, has)
    if gpus and _makes_cpus(chosen):
        on_node = request.gpus_per_node or max(1, gpus // (request.nodes or 1))
        why = "no memory stated, and memory of each GPU would bring all CPUs of a node there"
        return Pin(f"--mem={format_memory(size * on_node)}", why)
    option = "--mem-per-gpu" if gpus else "--mem"
    less = f", and {'each GPU of a node' if gpus else 'a node'} has {human_memory(size)}" if size < wanted else ""
    return Pin(f"{option}={format_memory(size)}", f"no memory stated{less}")


def _makes_cpus(chosen: Sequence[Partition]) -> bool:
    """Whether Slurm makes CPUs of memory there: of that of a GPU 22.05 makes all that a node has (measured)."""
    return any(partition.max_mem_per_cpu for partition in chosen)


def _node_memory(partition: Partition) -> int:
    """What one node of the partition can give a job; 0 where it is not known."""
    sizes = [size for size in (partition.memory_per_node, partition.max_mem_per_node) if size]
    return min(sizes, default=0)


def _share(request: JobRequest, partition: Partition, gpus: int) -> int:
    """What is there for one GPU (or one job without GPUs) on one node of the partition, in whole MB."""
    on_node = request.gpus_per_node or min(gpus, partition.gpus_per_node or gpus) or 1
    return max(_MIB, _node_memory(partition) // on_node // _MIB * _MIB)


def _time_pin(request: JobRequest, policy: Policy, chosen: Sequence[Partition]) -> Pin | None:
    if request.time_limit is not None:
        return None
    wanted = min(policy.defaults.time_limit, policy.limits.time_limit.free)
    limit = min([wanted, *(p.max_time_seconds for p in chosen if p.max_time_seconds is not None)])
    less = ", and the partition allows no more" if limit < wanted else ""
    return Pin(f"--time={format_duration(limit)}", f"no time limit stated{less}")


def _nodes_pin(request: JobRequest, gpus: int, chosen: Sequence[Partition], *, known: bool) -> Pin | None:
    """--nodes=1, where Slurm could otherwise give the memory, or the GPUs, once on each of several nodes."""
    tasks = _tasks(request, gpus)
    if (gpus == 1 and tasks == 1) or _placed(request):
        return None
    by_node = tasks > 1 and (request.gpus_per_node or request.gpus_per_socket)
    sized = (request.memory_per_node or request.memory_per_cpu) and not (request.gpus_per_node and tasks == 1)
    if not (sized or by_node or _makes_cpus(chosen) or any(partition.exclusive for partition in chosen)):
        return None
    if known and not (chosen and all(_holds(partition, request, gpus) for partition in chosen)):
        return None
    what = "the GPU and all tasks" if gpus == 1 else f"the {gpus} GPUs"
    more = "each node would hold the stated memory" if sized else "each node would bring GPUs of its own"
    return Pin("--nodes=1", f"keeps {what} on one node; spread, {more}")


def one_node_pin(request: JobRequest, chosen: Sequence[Partition]) -> Pin | None:
    """--nodes=1 for a request that does not say how many nodes, where one of each partition holds all of it."""
    said = _placed(request) or request.find("ntasks-per-socket", "ntasks-per-core", "extra-node-info")
    if said or not chosen or not all(_holds(partition, request, _gpus(request) or 0) for partition in chosen):
        return None
    return Pin("--nodes=1", "a ticket is for one number of nodes, and one holds all of the job")


def _dependency_pin(text: str) -> Pin | None:
    """Of several jobs one may fail while others run: a link that Slurm then removed would let what follows it begin."""
    if len(named_jobs(text)) < 2 or not re.search(r"(?i)after(?:ok|notok|corr):", text):
        return None
    return Pin("--kill-on-invalid-dep=no", "it stays in its place while a job that it waits for still runs")


def _priority_pin(request: JobRequest, policy: Policy, priority: str | None) -> Pin | None:
    """low never lifts a job that its script puts lower still; high is what the policy lists, or an error."""
    if priority == "low":
        stated = [directive.value or _BARE_NICE for directive in request.find("nice")][-1:]
        sizes = [int(value) for value in stated if value.isdecimal() and len(value) <= _DIGITS]
        nice = max(policy.priority.low.nice, *sizes, 0)
        return Pin(f"--nice={nice}", "priority low under this policy")
    if priority == "high":
        offered(priority, policy)
        if request.qos in policy.priority.high.qos:
            return None  # the script says the same
        return Pin(f"--qos={policy.priority.high.qos[0]}", "priority high under this policy")
    return None


def offered(priority: str | None, policy: Policy) -> None:
    """Raises InputError for a priority that the policy does not offer: it is not lowered in silence."""
    if priority == "high" and not policy.priority.high.qos:
        hint = "Leave it out, or an administrator lists a QOS under priority.high.qos in the site's policy."
        raise InputError("priority", priority, "is not offered by this policy", hint=hint)


def _placed(request: JobRequest) -> bool:
    """Whether the options themselves say how many nodes there are."""
    several = request.ntasks is not None and request.ntasks > (request.ntasks_per_node or request.ntasks)
    ratio = request.gpus is not None and request.gpus_per_node is not None
    return bool(request.nodes or request.nodes_max or request.find("nodelist") or several or ratio)


def _tasks(request: JobRequest, gpus: int) -> int:
    return request.ntasks or (request.ntasks_per_gpu or 0) * gpus or 1


def _holds(partition: Partition, request: JobRequest, gpus: int) -> bool:
    """Whether one node of the partition can hold the whole job."""
    cpus = max(_tasks(request, gpus) * (request.cpus_per_task or 1), (request.cpus_per_gpu or 0) * gpus)
    memory = request.memory_per_node or (request.memory_per_cpu or 0) * cpus
    return (
        partition.gpus_per_node >= gpus
        and (not partition.cpus_per_node or partition.cpus_per_node >= cpus)
        and (not _node_memory(partition) or _node_memory(partition) >= memory)
    )
