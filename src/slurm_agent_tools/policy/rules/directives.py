"""directives, partition: every option can be read and is one that an agent may use, and its partition is there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace as replaced
from difflib import get_close_matches

from slurm_agent_tools.models.geometry import OF_GPUS, TOGETHER, more_together, types_of_gpus
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import Directive, Evidence, JobRequest, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.gpus import uses_gpus
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Rule,
    not_evaluated,
    note,
    passed,
    proof,
    reading_of,
    replace,
    request_of,
)
from slurm_agent_tools.units import UNLIMITED, format_duration, format_memory

# --- directives: every option can be read and is one that an agent may use --------------------------------------------

_WHY = "An option that was not understood or not allowed can change what the job takes."

_MOST_LINES, _LONG = 8, 4_000  # unreadable lines that are told at once, and signs of all options together

_ELSEWHERE = frozenset({"requeue"})  # auto-retry speaks about it

# What is wrong with options that scripts really use, and what to do instead. Any other one is refused by its name.
_ADVICE = {
    "exclusive": "takes whole nodes with all their GPUs; ask for what is needed with --gpus, --cpus-per-task and --mem",
    "mincpus": "makes a job larger than it shows; ask with --cpus-per-task",
    "extra-node-info": "makes a job larger than it shows; ask with --ntasks and --cpus-per-task",
    "sockets-per-node": "makes a job larger than it shows; ask with --ntasks and --cpus-per-task",
    "cores-per-socket": "makes a job larger than it shows; ask with --ntasks and --cpus-per-task",
    "overcommit": "runs more tasks than CPUs; ask with --ntasks",
    "gres-flags": "with enforce-binding takes all CPUs beside its GPUs; leave it out",
    "distribution": "with plane or arbitrary puts more tasks on a node than are counted; ask with --ntasks-per-node",
    "constraint": "with a number of nodes (a100*2) takes more of them than it shows; ask with --nodes",
    "prefer": "with a number of nodes (a100*2) takes more of them than it shows; ask with --nodes",
    "nodelist": "with a function (feature{a100}) takes more nodes than it shows; name them one by one",
    "spread-job": "can take a GPU on each of several nodes for one that was asked; ask with --nodes and --ntasks",
    "core-spec": "takes cores away from the system",
    "thread-spec": "takes threads away from the system",
    "bbf": "brings in text after the check",
    "bb": "takes space in a burst buffer that this policy does not count",
    "export-file": "brings in variables that were not checked; set them in the script",
    "get-user-env": "brings in variables that were not checked; set them in the script",
    "propagate": "changes the limits of the job; set them in the script with ulimit",
    "container": "runs an image that was not checked; run it from the script with apptainer or podman",
    "container-id": "runs an image that was not checked; run it from the script with apptainer or podman",
    "nodefile": "brings in a list that was not checked; name nodes with --nodelist",
    "clusters": "sends the job to another cluster than the one that was looked at",
    "wrap": "has no effect in a script",
    "wait": "keeps sbatch waiting; use wait_for_job",
    "hold": "the guard submits every job held and releases it after its own check",
    "test-only": "submits nothing; use submit_job with dry_run",
    "priority": "is for operators; use the argument priority of submit_job",
    "reboot": "restarts nodes",
    "uid": "is for root",
    "gid": "is for root",
    "external": "makes a job that runs nothing",
}


def _judge_options(plan: PlannedRequest, policy: Policy) -> Judgement:
    """All that is against the options at once, so that one correction is enough."""
    request = request_of(plan)
    if request.problems:
        request = _read_on(reading_of(plan), request)
    spoken = [_unreadable(reading_of(plan), request.problems)] if request.problems else []
    spoken += [_components(request.find("hetjob"), request.components)] if request.components > 1 else []
    spoken += _disallowed(request, policy)
    spoken += _raised(request, policy) if request.find("qos") else []
    spoken += _typed(request) if len(request.find(*OF_GPUS)) > 1 else []
    spoken += [_together(request, *one) for one in more_together(request)] if request.find(*TOGETHER) else []
    if not spoken:
        return passed("Every option of the script is understood and allowed.", len(request.directives))
    if len(spoken) == 1:
        return spoken[0]
    first = spoken[0]
    told = " ".join(one.message.removesuffix(_WHY).strip() for one in spoken)
    ways = "\n".join(one.remedy or "" for one in reversed(spoken))
    evidence = [place for one in spoken for place in one.evidence]
    return replaced(first, message=f"{told} {_WHY}", remedy=ways, evidence=evidence)


def _disallowed(request: JobRequest, policy: Policy) -> list[Judgement]:
    """Options that are not on the list, but for those in lines that are corrected as a whole."""
    allowed, lines = {*policy.allowed_options, *_ELSEWHERE}, {problem.line for problem in request.problems}
    # Measured: 24.11 gives --gpus=1 --gres-flags=enforce-binding all CPUs of a node; --distribution=plane puts more
    # tasks on a node than are counted, and so does arbitrary with a node named twice (26.05); --constraint=a100*2
    # takes two nodes (22.05 to 26.05), --nodelist=feature{a100} all of that feature (24.11, 26.05).
    more = {
        "gres-flags": "enforce", "distribution": r"plane|^\s*a", "constraint": r"\*", "prefer": r"\*", "nodelist": "{",
    }  # fmt: skip
    stated = [d for d in request.directives if d.source != "pinned"]
    takes = [d for d in stated if d.option in more and re.search(more[d.option], d.value or "", re.IGNORECASE)]
    refused = [d for d in stated if d.option not in allowed or d in takes]
    refused = [d for d in refused if d.source == "argument" or d.evidence.line not in lines]
    if request.components > 1:
        refused = [d for d in refused if d.option != "hetjob"]
    return [_not_allowed(refused, policy.options_by_person)] if refused else []


def _typed(request: JobRequest) -> list[Judgement]:
    """GPUs of different types by two options, which add up: they are counted as if one said what the other says."""
    named = types_of_gpus(request)
    if not named:
        return []
    stated = request.find(*named)
    options = " and ".join(f"--{name}" for name in named)
    message = f"{options} name GPUs of different types, and the job gets those of both. {_WHY}"
    hint = note("name all GPUs by one option, as in #SBATCH --gpus-per-node=a100:2")
    return [Judgement("deny", message, options, "one type", f"{replace(stated[1:])}\n{hint}", proof(stated))]


def _together(request: JobRequest, options: tuple[str, ...], what: str, instead: str) -> Judgement:
    """Options that are allowed alone."""
    stated = [made for made in request.find(*options) if made.source != "pinned"]
    names = " and ".join(f"--{name}" for name in options)
    message = f"{names} {what}. {_WHY}"
    first = [made for made in stated if made.option == options[0]]
    remedy = f"{replace(first)}\n{note(f'{instead}.')}"
    return Judgement("deny", message, names, "one of them", remedy, proof(stated))


def _raised(request: JobRequest, policy: Policy) -> list[Judgement]:
    """A QOS of the name high says what priority high says: where the policy does not offer that, neither passes."""
    stated = [made for made in request.find("qos") if made.source != "pinned" and _high(made.value, policy)]
    if not stated or "qos" not in policy.allowed_options:
        return []
    message = f"--qos={stated[-1].value} asks for the priority high, which this policy does not offer. {_WHY}"
    hint = note("an administrator may list this QOS under priority.high.qos in the site's policy.")
    return [
        Judgement("deny", message, stated[-1].value, "priority.high.qos", f"{replace(stated)}\n{hint}", proof(stated))
    ]


def _high(value: str | None, policy: Policy) -> bool:
    """Whether a QOS, or one of a list, is high and not offered."""
    names = [name.strip() for name in (value or "").split(",")]
    return any(name.lower() == "high" and name not in policy.priority.high.qos for name in names)


def _read_on(reading: ScriptReading, request: JobRequest) -> JobRequest:
    """The request with what stands behind the first line that sbatch cannot read, where it would stop."""
    from slurm_agent_tools.scripts.directive_lines import read_directives  # noqa: PLC0415 - for a refusal only
    from slurm_agent_tools.scripts.effective_request import effective  # noqa: PLC0415

    problems, directives = dict.fromkeys(request.problems), request.directives
    if len(problems) > _MOST_LINES or _size(reading) > _LONG:
        return request
    for _ in range(_MOST_LINES):
        wrong = {problem.line for problem in problems}
        if wrong & {0, 1}:  # the file as a whole
            break
        lines = ["#" if number in wrong else line for number, line in enumerate(reading.text.split("\n"), 1)]
        header = read_directives("\n".join(lines).encode("utf-8", "replace"), reading.path)
        directives = (*(d for d in request.directives if d.source != "script"), *header.directives)
        more = [one for one in (*header.problems, *effective(header.directives).problems) if one.line not in wrong]
        if not more:
            break
        problems |= dict.fromkeys(more)
    return replaced(request, problems=tuple(problems), directives=directives)


def _size(reading: ScriptReading) -> int:
    return sum(len(line) for line in reading.text.split("\n") if line.startswith("#S"))


def _unreadable(reading: ScriptReading, problems: tuple[Evidence, ...]) -> Judgement:
    what = "; ".join(f"line {problem.line}: {problem.text}" if problem.line else problem.text for problem in problems)
    message = f"{what[:1].upper()}{what[1:]}. {_WHY}"
    from slurm_agent_tools.policy.rules import unreadable_options  # noqa: PLC0415 - for a refusal only

    return Judgement("deny", message, len(problems), 0, unreadable_options.corrected(reading, problems), problems)


def _components(stated: tuple[Directive, ...], count: int) -> Judgement:
    message = f"The script asks for a heterogeneous job of {count} components. Their limits cannot be told apart."
    remedy = f"{replace(stated)}\n{note('submit one job for each component.')}"
    return Judgement("deny", message, count, 1, remedy, proof(stated))


def _not_allowed(refused: list[Directive], by_person: Sequence[str]) -> Judgement:
    names = list(dict.fromkeys(directive.option for directive in refused))
    told = "; ".join(f"--{name} {_advice(name)}" for name in names)
    asked = ", ".join(f"--{name}" for name in names)
    remedy = f"{replace(refused)}\n{note(f'{told}.')}"
    if set(names) <= set(by_person):
        remedy = f"{replace(refused)}\n{note(f'{told}; a person may also agree to it as it is.')}"
        message = f"This policy wants a person's word for {asked}. {_WHY}"
        return Judgement("approve", message, ", ".join(names), "options_by_person", remedy, proof(refused))
    message = f"This policy does not let an agent use {asked}. {_WHY}"
    return Judgement("deny", message, ", ".join(names), "allowed_options", remedy, proof(refused))


def _advice(name: str) -> str:
    return _ADVICE.get(name) or "is not on the policy's list allowed_options; a person may add it to the site's policy"


DIRECTIVES = Rule(
    id="directives",
    what="Every #SBATCH line can be read as sbatch reads it, and uses only options on the policy's list.",
    why=_WHY,
    levels=("approve", "deny"),
    tools=SCRIPTS,
    judge=_judge_options,
    passing=(
        Example("plain options", ("#SBATCH --job-name=train", "#SBATCH --gpus=1", "#SBATCH --time=01:00:00"), "pass"),
    ),
    failing=(
        Example("an option that takes more than it shows", ("#SBATCH --mincpus=8", "python train.py"), "deny"),
        Example("CPUs that come with a GPU", ("#SBATCH --gpus=1", "#SBATCH --gres-flags=enforce-binding"), "deny"),
        Example("two nodes by a feature", ("#SBATCH --gres=gpu:4", "#SBATCH --constraint=a100*2"), "deny"),
        Example("all nodes of a feature", ("#SBATCH --gres=gpu:3", "#SBATCH --nodelist=feature{a100}"), "deny"),
        Example("two types that add up", ("#SBATCH --gpus=h100:4", "#SBATCH --gres=gpu:a100:4"), "deny"),
        Example("nodes between two", ("#SBATCH --nodelist=n1,n9", "#SBATCH --contiguous"), "deny"),
        Example("whole nodes", ("#SBATCH --exclusive", "python train.py"), "approve"),
        Example("an option that brings in another file", ("#SBATCH --bbf=buffer.txt", "python train.py"), "deny"),
        Example(
            "two components", ("#SBATCH --ntasks=1", "#SBATCH hetjob", "#SBATCH --ntasks=2", "python train.py"), "deny"
        ),
        Example("a high priority that is not offered", ("#SBATCH --qos=high", "python train.py"), "deny"),
        Example("a misspelt option", ("#SBATCH --memm=16G", "python train.py"), "deny"),
    ),
)


# --- partition: the partition exists and is up ------------------------------------------------------------------------

_FOR_EVER = "Such a job waits for ever."

_PATIENCE = "Call get_status until a partition is up, then submit again."

_WHY_THERE = "Slurm refuses a job for a partition that is not there and lets one for a closed partition wait for ever."


def _judge_partition(plan: PlannedRequest, policy: Policy) -> Judgement:
    request, partitions = request_of(plan), plan.partitions if plan.live is None else plan.live.partitions
    if partitions is None:
        return not_evaluated("Needs the cluster's partitions, which were not asked for.")
    names = [name.strip() for name in (request.partition or "").split(",") if name.strip()]
    if not names:
        names = [name for name, partition in partitions.items() if partition.default]
    if not names:
        return _refused(plan, partitions, "No partition is named and the cluster has no default one", None)
    for name in names:
        if name not in partitions:
            return _refused(plan, partitions, f"There is no partition {name}", name)
        if partitions[name].state != "UP":
            return _refused(plan, partitions, f"Partition {name} is {partitions[name].state}", name)
    chosen = [partitions[name] for name in names]
    fine = passed(f"Partition {', '.join(names)} is up.", ",".join(names))
    return _too_long(plan, chosen) or _too_large(plan, chosen, policy) or fine


def _refused(plan: PlannedRequest, partitions: Mapping[str, Partition], what: str, name: str | None) -> Judgement:
    stated = request_of(plan).find("partition")
    up = [partition for partition in partitions.values() if partition.state == "UP"]
    best = _meant(up, name) or _best(
        up, gpus=uses_gpus(request_of(plan), plan.resources), seconds=plan.resources.time_limit_seconds
    )
    remedy = _PATIENCE if best is None else replace(stated, f"#SBATCH --partition={best}")
    remedy += f"\n{note(f'partitions that are up: {_listed(partitions)}.')}"
    return Judgement("deny", f"{what}. {_WHY_THERE}", name, _listed(partitions), remedy, proof(stated))


def _meant(up: list[Partition], name: str | None) -> str | None:
    """The partition that a misspelt name is like; None where none is."""
    alike = get_close_matches((name or "").lower(), [partition.name for partition in up], n=1)
    return alike[0] if alike else None


def _best(up: list[Partition], *, gpus: bool, seconds: int | None) -> str | None:
    """The partition to propose: one that fits the job, the default one before others."""
    fit = [partition for partition in up if bool(partition.gpus_per_node) == gpus] or up
    ranked = sorted(fit, key=lambda p: (not _gives(p, seconds), bool(p.limited_to), not p.default, p.name))
    return ranked[0].name if ranked else None


def _gives(partition: Partition, seconds: int | None) -> bool:
    """Whether it gives this time."""
    most = partition.max_time_seconds
    return seconds is None or most is None or (seconds != UNLIMITED and seconds <= most)


def _listed(partitions: Mapping[str, Partition]) -> str:
    return ", ".join(sorted(name for name, partition in partitions.items() if partition.state == "UP")) or "none"


def _too_long(plan: PlannedRequest, chosen: list[Partition]) -> Judgement | None:
    """Slurm accepts a time beyond the partition's and never starts the job (unless its site enforces limits)."""
    wanted = plan.resources.time_limit_seconds
    limits = [p.max_time_seconds for p in chosen]
    if wanted is None or None in limits:
        return None
    most = max(limit for limit in limits if limit is not None)
    if wanted != UNLIMITED and wanted <= most:
        return None
    shown = format_duration(most)
    message = f"A time limit of {format_duration(wanted)} is more than the {shown} of this partition. {_FOR_EVER}"
    remedy = replace(request_of(plan).find("time"), f"#SBATCH --time={shown}")
    return Judgement("deny", message, format_duration(wanted), shown, remedy, proof(request_of(plan).find("time")))


def _too_large(plan: PlannedRequest, chosen: list[Partition], policy: Policy) -> Judgement | None:
    """The same for nodes, and for CPUs and memory of a node, of which no partition that is named has so many.

    Of memory beyond what is free another rule says how much may be asked for.
    """
    request, limits = request_of(plan), policy.limits
    if request.find("reservation") and not request.partition:  # which then is the reservation's
        return None
    free = limits.memory_per_gpu.free if plan.resources.gpus else limits.memory_without_gpus.free
    # All nodes: a QOS may let a job have more of them than MaxNodes.
    has = [(one.nodes, one.cpus_per_node, one.memory_per_node_max or one.memory_per_node) for one in chosen]
    asked = (("nodes", request.nodes, "nodes"), ("cpus-per-task", request.cpus_per_task, "CPUs on a node"),
             ("mem", request.memory_per_node, "of memory"))  # fmt: skip
    for (option, wanted, unit), there in zip(asked, zip(*has, strict=True), strict=True):
        stated = request.find(option)
        if wanted is None or not stated or not all(there) or wanted <= max(there):  # 0 is not known
            continue
        most, shown = max(there), str if option != "mem" else format_memory
        message = f"{shown(wanted)} {unit} are more than the {shown(most)} of this partition. {_FOR_EVER}"
        line = f"#SBATCH --{option}={shown(most)}"
        remedy = replace(stated, line) if option != "mem" or most <= free else note("ask for less memory of a node.")
        return Judgement("deny", message, shown(wanted), shown(most), remedy, proof(stated))
    return None


PARTITION = Rule(
    id="partition",
    what="The partition that is named, or else the cluster's default one, exists, is up, allows the time limit and has"
    " as many nodes, with as many CPUs and as much memory on each.",
    why=_WHY_THERE,
    levels=("deny",),
    tools=SCRIPTS,
    judge=_judge_partition,
    passing=(
        Example("a partition that is up", ("#SBATCH --partition=cpu",), "pass", facts={}),
        Example("the default partition", ("python train.py",), "pass", facts={}),
    ),
    failing=(
        Example("a partition that is not there", ("#SBATCH --partition=gpuu",), "deny", facts={}),
        Example("a partition that is down", ("#SBATCH --partition=old",), "deny", facts={}),
        Example(
            "a time that the partition does not give",
            ("#SBATCH --partition=cpu", "#SBATCH --time=2-00:00:00"),
            "deny",
            facts={},
        ),
        Example("more nodes than there are", ("#SBATCH --partition=cpu", "#SBATCH --nodes=99"), "deny", facts={}),
        Example(
            "more CPUs than a node has", ("#SBATCH --partition=cpu", "#SBATCH --cpus-per-task=999"), "deny", facts={}
        ),
        Example("no name and no default", ("python train.py",), "deny", facts={"partitions": ("cpu",)}),
        Example(
            "no limit in a partition that has one",
            ("#SBATCH --partition=cpu", "#SBATCH --time=UNLIMITED"),
            "deny",
            facts={},
        ),
        Example("the only partition is down", ("#SBATCH --partition=old",), "deny", facts={"partitions": ("old",)}),
    ),
)
