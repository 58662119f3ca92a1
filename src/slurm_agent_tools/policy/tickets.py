"""What a ticket for a request that was judged lets a job have, counted as the controller's plugin counts.

The plugin knows no partitions and so counts the worst placement on any; the ceilings are counted in the same way. They
are numbers and no shape, so what is judged is the most that they let a job have.
"""

from __future__ import annotations

import hashlib
import math
import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.decision import Decision, RuleDecision
from slurm_agent_tools.models.geometry import (
    Geometry,
    geometry,
    gpus_of_job_alone,
    is_ranged,
    layout,
    more_together,
    number,
    types_of_gpus,
    with_cpus_of_gpus,
)
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, ScriptReading
from slurm_agent_tools.models.submission_ticket import Ceilings, SubmissionTicket, named_gres, stated
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate, harsher_of_each, harsher_verdict
from slurm_agent_tools.policy.plan import one_node_pin
from slurm_agent_tools.scripts.effective_request import named, resolve
from slurm_agent_tools.units import UNLIMITED

_MIB = 2**20

_PARTS = re.compile(r"(?:^|[,:/])(?:shard|mps)(?=[:=,/]|$)", re.IGNORECASE)
"""The controller counts them as no GPU at all, and refuses them."""


def ceilings(
    request: JobRequest, *, uid: int, expires: int, account: str | None = None, threads_per_core: int = 1,
    most_gpus_per_node: int | None = None, default_cpus_per_gpu: int | None = None, slurm: str = "",
    exact: Collection[str] = (),
) -> Ceilings:  # fmt: skip
    """What the request takes at most, pins included, as the plugin counts it for a site with these nodes.

    `slurm`: its version, as in 22.05.8, where it is known. `exact`: what site_rules.held_exactly tells.
    Raises InputError for one that no ticket can be for.
    """
    anywhere = node_of_site(threads_per_core, most_gpus_per_node, default_cpus_per_gpu)
    asked, shape = with_cpus_of_gpus(request, anywhere), geometry(request, anywhere)
    _no_ticket_for(request, anywhere, shape)
    if slurm.startswith("22.05"):
        _no_ticket_of_22_05(asked)
    _check_stated(request)
    _check_placed(asked, shape)
    _check_exact(request, shape, exact)
    return worst_placement(request, anywhere, uid=uid, expires=expires, account=account)


def node_of_site(
    threads_per_core: int = 1, most_gpus_per_node: int | None = None, default_cpus_per_gpu: int | None = None
) -> Partition:
    """What the plugin knows of the nodes, as a partition of as many as there may be."""
    return Partition(
        name="", state="UP", default=True, nodes=0, max_time_seconds=None, default_time_seconds=None,
        gpus_per_node=most_gpus_per_node or 0, threads_per_core=threads_per_core, def_cpu_per_gpu=default_cpus_per_gpu,
    )  # fmt: skip


def worst_placement(
    request: JobRequest, anywhere: Partition, *, uid: int, expires: int, account: str | None = None
) -> Ceilings:
    """The most that a request of known time and memory takes on any nodes like those of `anywhere`."""
    shape, asked = geometry(request, anywhere), with_cpus_of_gpus(request, anywhere)
    # Counted alike wherever it may run; memory of a whole node by the GPUs that are asked for, as in the plugin.
    worst = replace(anywhere, gpus_per_node_min=shape.fewest_gpus)
    numbers = resolve(replace(request, partition=None), {worst.name: worst})
    seconds = numbers.time_limit_seconds or 0
    array, gpus, node = request.array, numbers.gpus or 0, _mebibytes(numbers.memory_per_node_bytes)
    if node is not None and request.memory_per_gpu:  # the plugin holds all GPUs against all nodes
        node = max(node, -(-(_mebibytes(request.memory_per_gpu) or 0) * gpus // shape.most_nodes))
    return Ceilings(
        uid=uid,
        expires=expires,
        time_limit=None if seconds == UNLIMITED else -(-seconds // 60),
        memory_per_node=node,
        memory_per_gpu=_mebibytes(numbers.memory_per_gpu_bytes),
        gpus=gpus,
        cpus=max(numbers.cpus or 1, _uneven_cpus(asked, gpus, shape, anywhere.gpus_per_node or gpus)),
        nodes=shape.most_nodes,
        array_tasks=1 if array is None else array.count,
        array_at_once=1 if array is None else array.concurrency,
        whole_nodes=bool(request.find("exclusive")),
        partitions=tuple(name for name in (request.partition or "").split(",") if name),
        qos=request.qos or None,
        account=account or None,
        dependency=request.dependency or None,
        licenses=stated(request, "licenses"),
        reservation=stated(request, "reservation"),
        gres=named_gres(request),
    )


def _check_stated(request: JobRequest) -> None:
    """Raises InputError where time or memory is left to the site, whose numbers a ticket cannot know.

    And for variables in --export: sbatch then has the login's own files run before the script, which no ticket is for.
    """
    for exported in request.find("export")[-1:]:
        if (exported.value or "").lower() != "all":
            hint = "Write --export=ALL, or leave it out, and set variables in the script."
            raise InputError("export", exported.value, "runs the login's own files before the script", hint=hint)
    if request.time_limit is None:
        raise InputError("time_limit", None, "is not stated", hint="Write #SBATCH --time.")
    stated = (request.memory_per_node, request.memory_per_cpu, request.memory_per_gpu)
    if all(size is None for size in stated):
        raise InputError("memory", None, "is not stated", hint="Write #SBATCH --mem.")
    if request.find("exclusive") and request.memory_per_node is None:  # as over_shares of the plugin
        hint = "Write #SBATCH --mem."
        raise InputError("memory", None, "is for each CPU or GPU, and whole nodes have more of them", hint=hint)


def _check_placed(request: JobRequest, shape: Geometry) -> None:
    """Raises InputError where Slurm chooses how many nodes there are, or which of them has how many tasks.

    The controller's plugin is told of no --distribution, by which a node without a task comes with all of its CPUs
    (measured on 22.05 to 26.05). It writes what is checked here into the job, by which each node has its tasks.
    """
    several = max(shape.nodes, shape.most_nodes) > 1
    if is_ranged(request) or (several and not request.nodes == shape.nodes == shape.most_nodes):
        fixed = shape.nodes == shape.most_nodes and not is_ranged(request)
        number_of = f"{shape.nodes}" if fixed else "1, or another number together with --ntasks-per-node"
        hint = f"Write #SBATCH --nodes={number_of}."
        raise InputError("nodes", None, "are not one number, for which alone there is a ticket", hint=hint)
    if several and shape.tasks != shape.nodes * (request.ntasks_per_node or shape.tasks // shape.nodes):
        problem = f"are not as many on each of {shape.nodes} nodes, for which alone there is a ticket"
        hint = "Write #SBATCH --ntasks-per-node, and leave --ntasks out."
        raise InputError("ntasks", str(shape.tasks), problem, hint=hint)
    each = shape.tasks // shape.nodes * (request.cpus_per_task or 1)
    of_job = request.gpus and (request.ntasks or request.ntasks_per_gpu)
    placed = several or request.ntasks_per_node or request.gpus_per_task or of_job
    if placed and (number(request, "mincpus") or 0) > each:  # for which 24.11 and 26.05 find no node
        problem = f"is more than the {each} CPUs of the tasks on each node"
        raise InputError("mincpus", None, problem, hint="Leave --mincpus out.")
    if several and gpus_of_job_alone(request) and request.find("nodelist") and shape.tasks > shape.nodes:  # nor for it
        problem = "are for several tasks on nodes that are named"
        raise InputError("gpus", str(request.gpus), problem, hint="Write #SBATCH --gpus-per-node in place of --gpus.")
    parts = request.find("ntasks-per-socket", "ntasks-per-core")
    if several and parts:  # 24.11, 26.05
        problem = "may leave one of several nodes without a task, for which there is no ticket"
        hint = f"Leave --{parts[0].option} out, and write #SBATCH --ntasks-per-node."
        raise InputError(parts[0].option, parts[0].value, problem, hint=hint)


def _check_exact(request: JobRequest, shape: Geometry, exact: Collection[str]) -> None:
    """Raises InputError where Slurm may give less of something than is counted, and a rule of the site speaks of it."""
    if "gpus" in exact and shape.gpus != shape.most_gpus:
        hint = "Write #SBATCH --gpus-per-node."
        raise InputError("gpus", None, "may be more than they show, and a rule of the site speaks of them", hint=hint)
    if "time" in exact and request.time_min is not None:
        hint = "Leave #SBATCH --time-min out."
        raise InputError("time-min", None, "may make the time less, and a rule of the site speaks of it", hint=hint)
    if "qos" in exact and not request.qos:  # the default is the user's own choice, at any time (measured)
        hint = "Write #SBATCH --qos."
        raise InputError("qos", None, "is not named, and a rule of the site speaks of it", hint=hint)
    if "gpus" in exact and request.gpus and request.gpus_per_task:  # 22.05 may give those of fewer tasks (measured)
        problem = "stands beside --gpus, and a rule of the site speaks of GPUs"
        raise InputError("gpus-per-task", None, problem, hint="Leave #SBATCH --gpus out.")
    if {"tasks", "once"} & {*exact} and request.array is not None and not request.array.ascends:
        problem = "names tasks in another order or twice, and a rule of the site speaks of them"
        raise InputError("array", request.array.text, problem, hint="Name each task once, the least first.")


def _uneven_cpus(request: JobRequest, gpus: int, shape: Geometry, most: int) -> int:
    """CPUs of GPUs that lie unevenly: 24.11 and 26.05 give each node those of the node with the most (measured)."""
    first, last = max(shape.nodes, 2), min(shape.most_nodes, gpus)
    if first > last or not gpus_of_job_alone(request):
        return 0
    # Nodes times the GPUs of the fullest one: largest where these are as many, or where it is full.
    tried = (min(max(nodes, first), last) for nodes in (first, (gpus + 1) // 2, gpus + 1 - most, last))
    return (request.cpus_per_gpu or 0) * max(nodes * min(most, gpus + 1 - nodes) for nodes in tried)


def _no_ticket_for(request: JobRequest, anywhere: Partition, shape: Geometry) -> None:
    """Raises InputError for what takes more than is counted of it."""
    if request.components > 1:
        raise InputError("script", None, "asks for a heterogeneous job, for which there is no ticket")
    if any(_PARTS.search(d.value or "") for d in request.find("gres", "tres-per-task")):
        raise InputError("gres", None, "asks for parts of GPUs, for which there is no ticket")
    if request.find("reservation") and not request.partition:
        hint = "Write #SBATCH --partition."
        raise InputError("partition", None, "is not named, and with a reservation it may be any", hint=hint)
    if request.gpus_per_socket:  # Slurm may give those of more sockets than the job names
        problem, hint = "is a number for which there is no ticket", "Write #SBATCH --gpus-per-node."
        raise InputError("gpus-per-socket", str(request.gpus_per_socket), problem, hint=hint)
    if any("*" in (d.value or "") for d in request.find("constraint", "prefer")):
        problem = "names a number of nodes, for which there is no ticket"
        raise InputError("constraint", None, problem, hint="Write #SBATCH --nodes.")
    _no_ticket_for_whole(request, shape)
    if any("{" in (d.value or "") for d in request.find("nodelist")):
        hint = "Name the nodes one by one."
        raise InputError("nodelist", None, "names nodes by a function, for which there is no ticket", hint=hint)
    if typed := types_of_gpus(request):
        hint = "Name all GPUs by one option."
        raise InputError("gpus", ", ".join(typed), "name GPUs of different types, which add up", hint=hint)
    for options, what, instead in more_together(request, anywhere):
        names = ", ".join(f"--{name}" for name in options)
        raise InputError(options[0], names, f"{what}, for which there is no ticket", hint=f"Here {instead}.")


def _no_ticket_of_22_05(request: JobRequest) -> None:
    """The same for what the plugin refuses there: a node, or a job, without the GPUs or the tasks that are counted."""
    of_task = request.gpus_per_task or 0
    if of_task and max(request.cpus_per_task or 1, of_task * (request.cpus_per_gpu or 0)) > 1:
        hint = "Write #SBATCH --gpus-per-node."
        raise InputError("gpus-per-task", str(of_task), "stands beside several CPUs for each task", hint=hint)
    gpus = request.gpus or request.gpus_per_node or of_task or request.ntasks_per_gpu
    if (request.nodes or 1) > 1 and (request.cpus_per_task or 1) > 1 and not gpus and not request.find("exclusive"):
        hint = "Ask for one node, for one CPU of each task, or with --exclusive, to which a person agrees."
        problem = "may bring all CPUs of one of several nodes on Slurm 22.05"
        raise InputError("cpus-per-task", str(request.cpus_per_task), problem, hint=hint)
    by_gpu = request.cpus_per_gpu and request.memory_per_gpu and gpus_of_job_alone(request)
    if by_gpu and geometry(request, None).nodes > 1:
        hint = "Write #SBATCH --gpus-per-node."
        raise InputError("mem-per-gpu", None, "bounds nothing on a node without a GPU, and one may have all", hint=hint)


def _no_ticket_for_whole(request: JobRequest, shape: Geometry) -> None:
    """The same for nodes and cores that are taken whole."""
    if any(d.value for d in request.find("exclusive")[-1:]):  # a ticket says whole nodes or none
        way, problem = request.find("exclusive")[-1].value, "is a way for which there is no ticket"
        raise InputError("exclusive", way, problem, hint="Write --exclusive alone, or leave it out.")
    sockets, cores, threads = layout(request)
    if (sockets or 1) * (cores or 1) > 1 and not request.find("extra-node-info"):  # as laid_out of the plugin
        hint = "Ask with --ntasks and --cpus-per-task."
        raise InputError("cores-per-socket", None, "makes a job larger than it shows", hint=hint)
    if (threads or 1) > 1 and shape.tasks * (request.cpus_per_task or 1) <= shape.nodes:  # which the plugin counts
        problem, hint = "brings more CPUs than those of the tasks", "Leave it out, or write --cpus-per-task."
        raise InputError("threads-per-core", str(threads), problem, hint=hint)


def _mebibytes(size: int | None) -> int | None:
    """Nothing known of it is all that a node has: a person agreed to that."""
    return None if size is None else -(-size // _MIB)


# --- A ticket holds numbers and no shape: what it lets a job have is what is judged -----------------------------------

_OTHERWISE = (
    "A ticket holds numbers, and with it this request could take so much in another shape. State --gpus-per-node in"
    " place of --gpus or --gpus-per-task, so that it can take no more than you mean."
)


def evaluate_for_ticket(
    ceilings_of: Callable[[JobRequest], Ceilings], script: ScriptReading | None, context: EvaluationContext
) -> Decision:
    """The decision on a script and on the most that a job with its ticket can take in the partitions that it names.

    A job that leaves it to Slurm how many nodes it takes is kept on one if one holds it. `ceilings_of` are those of its
    ticket.
    """
    chosen = _chosen(ceilings_of, script, replace(context, grant=None))
    if context.grant is None:
        return chosen
    itself = evaluate(script, replace(context, pinned=chosen.pinned))
    if chosen.resources == itself.resources:
        return itself
    return harsher_of_each(evaluate(script, replace(context, numbers=chosen.resources, pinned=chosen.pinned)), itself)


def _chosen(
    ceilings_of: Callable[[JobRequest], Ceilings], script: ScriptReading | None, context: EvaluationContext
) -> Decision:
    """The same without a person's yes, which is to what is chosen here."""
    asked = evaluate(script, context)
    _check_partitions(asked.request, _offered(context))
    wide = _at_most(ceilings_of, script, context, asked)
    if wide is None:  # what no ticket is for on one node either is told where one would be made
        return _on_one_node(ceilings_of, script, context, asked) or asked
    if wide.resources == asked.resources:
        return asked
    if wide.verdict != "approve" and not harsher_verdict(wide, asked):
        shown = replace(
            wide.resources, nodes=asked.resources.nodes, memory_bytes=asked.resources.memory_bytes,
            memory_per_node_bytes=asked.resources.memory_per_node_bytes,
        )  # fmt: skip
        return replace(wide, resources=shown)  # its hours count as they may be
    return replace(wide, rules=tuple(map(_explained, asked.rules, wide.rules)))


def _on_one_node(
    ceilings_of: Callable[[JobRequest], Ceilings], script: ScriptReading | None, context: EvaluationContext,
    asked: Decision,
) -> Decision | None:  # fmt: skip
    """The same of the job on one node; None where it says how many there are, none holds it, or no ticket is for it."""
    pin = one_node_pin(asked.request, named(asked.request, _offered(context)))
    if pin is None:
        return None
    alone = replace(context, pinned=(*asked.pinned, pin))
    return _at_most(ceilings_of, script, alone, evaluate(script, alone))


def _check_partitions(request: JobRequest, offered: Mapping[str, Partition] | None) -> None:
    """Raises InputError for what no ticket is for where a partition gives whole nodes, or CPUs for memory."""
    names = {name.strip() for name in (request.partition or "").split(",")}
    if len({one.exclusive for name, one in (offered or {}).items() if name in names}) > 1:  # good in each alone
        hint = "Name those that give whole nodes, or none of them."
        raise InputError("partition", request.partition, "are of whole nodes and others", hint=hint)
    found, several = named(request, offered), (request.ntasks or 1) > 1 and not request.ntasks_per_node
    split = min((one.max_mem_per_cpu for one in found if one.max_mem_per_cpu), default=math.inf)
    if several and (request.memory_per_node or 0) > split:
        hint = "Write #SBATCH --ntasks-per-node."  # 24.11, 26.05: as many CPUs for each task
        raise InputError("mem", None, "is more than MaxMemPerCPU, and Slurm makes CPUs of it", hint=hint)
    of_tasks = request.gpus_per_task and request.memory_per_cpu is None and (request.memory_per_node or split) > split
    if split < math.inf and (request.memory_per_gpu or of_tasks):  # as check_together of the plugin
        hint = "Write #SBATCH --gpus-per-node, and --mem as the only memory option."
        raise InputError("mem", None, "brings CPUs with MaxMemPerCPU, and GPUs go with them", hint=hint)
    if any(one.exclusive for one in found) and request.memory_per_node is None:  # as over_shares of the plugin
        hint = "Write #SBATCH --mem."
        raise InputError("memory", None, "is for each CPU or GPU, and the partition gives whole nodes", hint=hint)


def _offered(context: EvaluationContext) -> Mapping[str, Partition] | None:
    return context.partitions if context.live is None else context.live.partitions


def _at_most(
    ceilings_of: Callable[[JobRequest], Ceilings], script: ScriptReading | None, context: EvaluationContext,
    decision: Decision,
) -> Decision | None:  # fmt: skip
    """The decision on the most that the ticket lets, and on the request itself where a rule is more severe on that.

    The same one where the most is no more; None where no ticket is for it.
    """
    offered = named(decision.request, _offered(context))
    try:
        most = _most(decision.resources, ceilings_of(decision.request), offered)
    except InputError:
        return None
    if most == decision.resources:
        return decision
    return harsher_of_each(evaluate(script, replace(context, numbers=most, pinned=decision.pinned)), decision)


def _most(counted: Resources, allowed: Ceilings, offered: Sequence[Partition]) -> Resources:
    """The larger of what was counted and what is allowed, as far as one of the partitions has it."""
    nodes = max(
        counted.nodes or 1, min(allowed.nodes, _has(offered, lambda one: min(one.nodes, one.max_nodes or one.nodes)))
    )
    of_node = _has(offered, lambda one: one.largest_memory)
    whole = bool(offered) and all(partition.exclusive for partition in offered)  # in every shape, and so it was counted
    shared = -1 if whole else allowed.memory_per_gpu
    each = allowed.memory_per_node
    if each is not None and allowed.memory_per_gpu and not whole:  # the plugin holds all GPUs against all nodes
        together = allowed.memory_per_gpu * min(allowed.gpus, _has(offered, lambda one: one.gpus_per_node))
        each = max(each, min(together, each * allowed.nodes))
    on_node = _larger(counted.memory_per_node_bytes, each, of_node)
    return replace(
        counted,
        nodes=None if counted.nodes is None else nodes,
        cpus=_larger(counted.cpus, allowed.cpus, _has(offered, lambda one: nodes * one.cpus_per_node), unit=1),
        gpus=_larger(counted.gpus, allowed.gpus, _has(offered, lambda one: nodes * one.gpus_per_node), unit=1),
        memory_per_node_bytes=on_node,
        memory_per_gpu_bytes=_larger(counted.memory_per_gpu_bytes, shared, of_node),
        memory_bytes=_larger(counted.memory_bytes, None if on_node is None else -(-on_node // _MIB) * nodes, _NO_END),
    )


_NO_END = 2**63


def _has(offered: Sequence[Partition], what: Callable[[Partition], int]) -> int:
    """The most of it that one of the partitions has; without end where that is not known of one."""
    known = [what(partition) for partition in offered]
    return max(known) if known and all(known) else _NO_END


def _larger(counted: int | None, allowed: int | None, has: int, unit: int = _MIB) -> int | None:
    """What was counted, unless so many units are more, None of them all that there is; what is not known stays so."""
    most = has if allowed is None else min(allowed * unit, has)
    return counted if counted is None or most == _NO_END or most < counted + unit else most


def _explained(before: RuleDecision, now: RuleDecision) -> RuleDecision:
    return now if now.outcome == before.outcome else replace(now, message=f"{now.message} {_OTHERWISE}")


def new_ticket(allowed: Ceilings, script: bytes | None) -> SubmissionTicket:
    """A ticket with a number that nobody can guess."""
    return SubmissionTicket(
        secrets.token_hex(16), allowed, None if script is None else hashlib.sha256(script).hexdigest()
    )
