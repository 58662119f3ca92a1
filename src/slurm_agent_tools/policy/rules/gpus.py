"""gpus, cuda-visible-devices, device-index: how many GPUs one job may take; which ones, Slurm says."""

from __future__ import annotations

import re
from dataclasses import dataclass

from slurm_agent_tools.models.request import Directive, Finding, JobRequest, Resources
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import remedies
from slurm_agent_tools.policy.rules.examples import asks, does
from slurm_agent_tools.policy.rules.memory_per_gpu import uses_gpus
from slurm_agent_tools.policy.rules.rule import (
    SCRIPTS,
    Example,
    Judgement,
    Measure,
    Rule,
    judge_findings,
    judge_measure,
    passed,
    proof,
    reading_of,
    request_of,
    speak,
    uncountable,
)

# --- gpus: how many GPUs one job may take -----------------------------------------------------------------------------

GPU_OPTIONS = ("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres", "tres-per-task", "ntasks-per-gpu")

_WHY = "Every GPU that one job holds is one that nobody else can use."

# Parts of GPUs: how many of them are a whole one only the cluster's gres.conf tells.
_SHARES = re.compile(r"(?:^|[,:/])(?:shard|mps)(?=[:=,/]|$)", re.IGNORECASE)


def _judge_number(plan: PlannedRequest, policy: Policy) -> Judgement:
    request = request_of(plan)
    shares = tuple(d for d in request.find("gres", "tres-per-task") if _SHARES.search(d.value or ""))
    if shares:
        return _parts(shares)
    if not uses_gpus(request, plan.resources):
        return passed("The job uses no GPU.", 0, policy.limits.gpus.free)
    total = plan.resources.gpus
    stated = request.find(*GPU_OPTIONS)
    if total is None:
        return uncountable("GPUs", str(policy.limits.gpus.free), stated, "#SBATCH --gpus=1")
    measure = Measure(
        "GPUs", total, policy.limits.gpus, stated, lambda size: _Cut.of(request, total, size).lines(), str, _WHY,
        stated=lambda size: _Cut.of(request, total, size).directives(),
        note=lambda size: _Cut.of(request, total, size).told(reading_of(plan).text),
    )  # fmt: skip
    return judge_measure(measure, plan, policy)


def _parts(shares: tuple[Directive, ...]) -> Judgement:
    """`--gres=shard:4`: Slurm shows no GPU for it, so that no limit would count it."""
    what = ", ".join(f"--{one.option}={one.value}" for one in shares)
    message = f"GPUs: {what} takes parts of GPUs, which count as 0 GPUs in every limit, so a person decides. {_WHY}"
    return Judgement("approve", message, what, 0, remedies.replace(shares, "#SBATCH --gpus=1"), proof(shares))


_PROCESSES = re.compile(r"(--(?:nproc[-_]per[-_]node|nnodes|num[-_]gpus|num[-_]processes))([=\s]+)(\d+)\b")


@dataclass(frozen=True, slots=True)
class _Cut:
    """The same job with fewer GPUs, in the layout that it is written for: fewer nodes, then fewer GPUs on one.

    `option`: the one option that asks for GPUs; None where there are several or the number follows from others, and
    then only the total is stated. `per`, `each`: GPUs of one node (of one task for --gpus-per-task), before and after.
    """

    request: JobRequest
    option: str | None
    size: int
    nodes: int
    fewer: int
    per: int
    each: int
    tasks: int = 0

    @classmethod
    def of(cls, request: JobRequest, total: int, size: int) -> _Cut:
        """The cut from `total` GPUs to at most `size`."""
        options = {d.option for d in request.find(*GPU_OPTIONS) if d.source != "pinned"}
        option, nodes = next(iter(options)) if len(options) == 1 else None, request.nodes or 1
        if option is None or not _plainly(request, option, total):
            return cls(request, None, size, nodes, min(nodes, size), 0, 0)
        per = total // nodes
        each = min(per, size)
        fewer = min(nodes, max(1, size // each))
        if option != "gpus-per-task" or not request.gpus_per_task:
            return cls(request, option, fewer * each, nodes, fewer, per, each)
        by_task = min(request.gpus_per_task, size)
        tasks = max(1, each // by_task) * fewer
        return cls(request, option, by_task * tasks, nodes, fewer, request.gpus_per_task, by_task, tasks)

    def layout(self) -> dict[str, int]:
        """The options of the layout that change, with their new numbers; only such as the job states."""
        request, new = self.request, dict[str, int]()
        if request.nodes is not None and self.fewer != self.nodes:
            new["nodes"] = self.fewer
        if self.option is None:
            return new
        before = request.ntasks if request.ntasks is not None else 0
        if self.tasks:
            tasks, by_node = self.tasks, self.tasks // self.fewer
        else:
            share = self.fewer * self.each / (self.nodes * self.per)
            tasks = max(1, int(before * share))
            by_node = self.each if request.ntasks_per_node == self.per else request.ntasks_per_node or 0
        if before and tasks < before:
            new["ntasks"] = tasks
        if request.ntasks_per_node and by_node < request.ntasks_per_node:
            new["ntasks-per-node"] = by_node
        return {name: number for name, number in new.items() if request.find(name)}

    def directives(self) -> tuple[Directive, ...]:
        """The options that the lines stand for."""
        gpus = self.request.find(*GPU_OPTIONS) if self.lines_of_gpus() else ()
        return (*self.request.find(*self.layout()), *gpus)

    def lines_of_gpus(self) -> list[str]:
        """The line that asks for the GPUs."""
        if self.option in {None, "gpus"}:
            return [f"#SBATCH --gpus={self.size}"]
        if self.option == "gres":
            value = self.request.find("gres")[-1].value or ""
            return [f"#SBATCH --gres={_OF_GRES.sub(lambda found: f'{found[1]}:{self.each}', value, count=1)}"]
        return [f"#SBATCH --{self.option}={self._typed()}{self.each}"]

    def _typed(self) -> str:
        """The kind of GPU in front of a number, where one is asked for."""
        value = self.request.find(self.option or "")[-1].value or ""
        return f"{value.rpartition(':')[0]}:" if ":" in value else ""

    def lines(self) -> str:
        """The directives, those of the layout first."""
        layout = [f"#SBATCH --{name}={number}" for name, number in self.layout().items()]
        return "\n".join([*layout, *self.lines_of_gpus()])

    def told(self, text: str) -> str:
        """What the launcher is told in the script that no longer fits."""
        if self.option is None:
            return ""
        found = [one for one in dict.fromkeys(_PROCESSES.findall(text)) if self._fits(*one) != int(one[2])]
        shown = ", ".join(f"`{name}{sign}{value}` to {self._fits(name, sign, value)}" for name, sign, value in found)
        shape = f"{self.fewer} {'node' if self.fewer == 1 else 'nodes'} with {self.size // self.fewer} GPUs each"
        return f"the job has {shape} then; change {shown}." if found else ""

    def _fits(self, name: str, _: str, value: str) -> int:
        """The number that belongs behind an option of a launcher."""
        before, after = (self.nodes, self.fewer) if "nnodes" in name else (self.per, self.each)
        if "processes" in name:
            before, after = self.nodes * self.per, self.fewer * self.each
        return after if int(value) == before else int(value)


def _plainly(request: JobRequest, option: str, total: int) -> bool:
    """Whether the total is what this one option says, for each node, task or job, and nothing else."""
    nodes, value = request.nodes or 1, request.find(option)[-1].value or ""
    tasks = request.ntasks or nodes * (request.ntasks_per_node or 1)
    said = {
        "gpus": request.gpus,
        "gpus-per-node": nodes * (request.gpus_per_node or 0),
        "gres": nodes * (request.gpus_per_node or 0) if _GRES.fullmatch(value) else None,
        "gpus-per-task": tasks * (request.gpus_per_task or 0),
    }
    return said.get(option) == total and total % nodes == 0


_OF_GRES = re.compile(r"(\bgpu(?::[A-Za-z][\w.-]*)?)(?::\d+)?")

_GRES = re.compile(r"(?:gres[:/])?gpu(?::[A-Za-z][\w.-]*)?(?::\d+)?(?:\(S:[\d,-]+\))?")

GPUS = Rule(
    id="gpus",
    what="GPUs of one job are free up to a number, need a written reason above it, and a person beyond a second one.",
    why=_WHY,
    levels=("justify", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge_number,
    passing=(
        Example("four GPUs", asks("#SBATCH --gpus=4", gpus=4, resources=Resources(gpus=4)), "pass"),
        Example(
            "six GPUs with a reason",
            asks(
                "#SBATCH --gpus=6  # JUSTIFIED: data parallel run of the 13B model",
                gpus=6,
                reason="data parallel run of the 13B model",
                resources=Resources(gpus=6),
            ),
            "pass",
        ),
    ),
    failing=(
        Example("six GPUs", asks("#SBATCH --gpus=6", gpus=6, resources=Resources(gpus=6)), "justify"),
        Example(
            "four GPUs on each of four nodes",
            asks(
                "#SBATCH --nodes=4",
                "#SBATCH --gres=gpu:4",
                nodes=4,
                gpus_per_node=4,
                resources=Resources(nodes=4, gpus=16),
            ),
            "approve",
        ),
        Example(
            "parts of GPUs", asks("#SBATCH --gres=shard:4", "python train.py", resources=Resources(gpus=0)), "approve"
        ),
        Example(
            "GPUs that were not counted",
            asks("#SBATCH --gpus-per-socket=1", gpus_per_socket=1, resources=Resources()),
            "deny",
            counted=False,
        ),
    ),
)


# --- cuda-visible-devices: the variables by which Slurm tells a job its GPUs are Slurm's to set -----------------------

VARIABLES_ID = "cuda-visible-devices"

DEVICE_VARIABLES = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "GPU_DEVICE_ORDINAL",
        "ZE_AFFINITY_MASK",
    }
)

_WHY_SLURM = "Slurm sets this variable to the GPUs that the job was given; another value reaches for somebody else's."

_ADVICE = "the GPUs of the job are already the only visible ones; ask for their number with #SBATCH --gpus=N."


def _judge_variables(plan: PlannedRequest, _: Policy) -> Judgement:
    reading = reading_of(plan)
    found = [finding for finding in reading.findings if finding.rule == VARIABLES_ID]
    lines = {finding.evidence.line for finding in found}
    found += [
        _exported(directive)
        for directive in reading.request.find("export")
        if directive.source != "pinned" and directive.evidence.line not in lines and _names(directive)
    ]
    if not found:
        return passed("The script leaves the choice of GPUs to Slurm.")
    return speak(VARIABLES_ID, reading, found, _WHY_SLURM, _ADVICE)


def _names(directive: Directive) -> set[str]:
    """Device variables that an --export list gives a value or passes on."""
    words = {item.partition("=")[0].strip() for item in (directive.value or "").split(",")}
    return words & DEVICE_VARIABLES


def _exported(directive: Directive) -> Finding:
    return Finding(
        VARIABLES_ID, f"--export passes {', '.join(sorted(_names(directive)))} to the job", directive.evidence
    )


CUDA_VISIBLE_DEVICES = Rule(
    id=VARIABLES_ID,
    what=f"A script never sets {', '.join(sorted(DEVICE_VARIABLES))}.",
    why=_WHY_SLURM,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=_judge_variables,
    passing=(
        Example("reading the variable", asks("#SBATCH --gpus=1", 'echo "$CUDA_VISIBLE_DEVICES"', gpus=1), "pass"),
        Example(
            "exporting something else",
            asks("#SBATCH --export=ALL,SEED=7", "python train.py", export="ALL,SEED=7"),
            "pass",
        ),
    ),
    failing=(
        Example(
            "setting it",
            does(VARIABLES_ID, "sets CUDA_VISIBLE_DEVICES", "export CUDA_VISIBLE_DEVICES=0,1"),
            "deny",
        ),
        Example(
            "setting it in a directive",
            asks(
                "#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0",
                "python train.py",
                export="ALL,CUDA_VISIBLE_DEVICES=0",
            ),
            "deny",
        ),
    ),
)


# --- device-index: no hard-coded GPU number ---------------------------------------------------------------------------

INDEX_ID = "device-index"

_WHY_INDEX = "A fixed number works on one allocation and takes the wrong GPU, or none, on the next."

DEVICE_INDEX = Rule(
    id=INDEX_ID,
    what="A script names no fixed GPU (`cuda:0`, `/GPU:1`, set_device(0)).",
    why=_WHY_INDEX,
    levels=("warn", "approve", "deny"),
    tools=SCRIPTS,
    judge=judge_findings(
        INDEX_ID,
        clean="The script names no fixed GPU.",
        why=_WHY_INDEX,
        advice="the job's GPUs are the only ones it sees; take a number from LOCAL_RANK or SLURM_LOCALID.",
    ),
    passing=(
        Example(
            "a device without a number",
            asks("""python -c 'import torch; print(torch.ones(1, device="cuda"))'"""),
            "pass",
        ),
    ),
    failing=(
        Example(
            "the first GPU by number",
            does(
                INDEX_ID,
                "uses the fixed device cuda:0",
                """python -c 'import torch; print(torch.ones(1, device="cuda:0"))'""",
            ),
            "deny",
        ),
        Example(
            "a list of GPUs by number",
            does(INDEX_ID, "it names devices by number: --gpus 0,1", "python train.py --gpus 0,1 --epochs 3"),
            "deny",
        ),
        Example(
            "the number of a GPU for mdrun",
            does(INDEX_ID, "it names devices by number: -gpu_id 0", "gmx mdrun -gpu_id 0 -v"),
            "deny",
        ),
    ),
)
