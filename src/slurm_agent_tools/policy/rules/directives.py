"""directives: every option of a script can be read and is one that an agent may use."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as replaced

from slurm_agent_tools.models.request import Directive, Evidence, JobRequest, ScriptReading
from slurm_agent_tools.policy.document import Policy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules import remedies
from slurm_agent_tools.policy.rules.examples import FILE, asks
from slurm_agent_tools.policy.rules.remedies import replace
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Judgement, Rule, passed, proof, reading_of, request_of

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


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    """All that is against the options at once, so that one correction is enough."""
    request = request_of(plan)
    if request.problems:
        request = _read_on(reading_of(plan), request)
    spoken = [_unreadable(reading_of(plan), request.problems)] if request.problems else []
    spoken += [_components(request.find("hetjob"), request.components)] if request.components > 1 else []
    spoken += [*_disallowed(request, policy), *_raised(request, policy)]
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
    refused = [d for d in request.directives if d.source != "pinned" and d.option not in allowed]
    refused = [d for d in refused if d.source == "argument" or d.evidence.line not in lines]
    if request.components > 1:
        refused = [d for d in refused if d.option != "hetjob"]
    return [_refused(refused, policy.options_by_person)] if refused else []


def _raised(request: JobRequest, policy: Policy) -> list[Judgement]:
    """A QOS of the name high says what priority high says: where the policy does not offer that, neither passes."""
    stated = [made for made in request.find("qos") if made.source != "pinned" and (made.value or "").lower() == "high"]
    if not stated or "qos" not in policy.allowed_options or stated[-1].value in policy.priority.high.qos:
        return []
    message = f"--qos={stated[-1].value} asks for the priority high, which this policy does not offer. {_WHY}"
    hint = remedies.note("an administrator may list this QOS under priority.high.qos in the site's policy.")
    return [
        Judgement("deny", message, stated[-1].value, "priority.high.qos", f"{replace(stated)}\n{hint}", proof(stated))
    ]


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
    remedy = f"{replace(stated)}\n{remedies.note('submit one job for each component.')}"
    return Judgement("deny", message, count, 1, remedy, proof(stated))


def _refused(refused: list[Directive], by_person: Sequence[str]) -> Judgement:
    names = list(dict.fromkeys(directive.option for directive in refused))
    told = "; ".join(f"--{name} {_advice(name)}" for name in names)
    asked = ", ".join(f"--{name}" for name in names)
    remedy = f"{replace(refused)}\n{remedies.note(f'{told}.')}"
    if set(names) <= set(by_person):
        remedy = f"{replace(refused)}\n{remedies.note(f'{told}; a person may also agree to it as it is.')}"
        message = f"This policy wants a person's word for {asked}. {_WHY}"
        return Judgement("approve", message, ", ".join(names), "options_by_person", remedy, proof(refused))
    message = f"This policy does not let an agent use {asked}. {_WHY}"
    return Judgement("deny", message, ", ".join(names), "allowed_options", remedy, proof(refused))


def _advice(name: str) -> str:
    return _ADVICE.get(name) or "is not on the policy's list allowed_options; a person may add it to the site's policy"


def _two() -> PlannedRequest:
    """A heterogeneous job."""
    plan = asks("#SBATCH --ntasks=1", "#SBATCH hetjob", "#SBATCH --ntasks=2", "python train.py", components=2)
    reading = reading_of(plan)
    marked = tuple(
        replaced(d, option="hetjob") if "hetjob" in d.evidence.text else d for d in reading.request.directives
    )
    return replaced(plan, reading=replaced(reading, request=replaced(reading.request, directives=marked)))


RULE = Rule(
    id="directives",
    what="Every #SBATCH line can be read as sbatch reads it, and uses only options on the policy's list.",
    why=_WHY,
    levels=("approve", "deny"),
    tools=SCRIPTS,
    judge=_judge,
    passing=(
        Example(
            "plain options",
            asks("#SBATCH --job-name=train", "#SBATCH --gpus=1", "#SBATCH --time=01:00:00", name="train", gpus=1),
            "pass",
        ),
    ),
    failing=(
        Example("an option that takes more than it shows", asks("#SBATCH --mincpus=8", "python train.py"), "deny"),
        Example("whole nodes", asks("#SBATCH --exclusive", "python train.py"), "approve"),
        Example("an option that brings in another file", asks("#SBATCH --bbf=buffer.txt", "python train.py"), "deny"),
        Example("two components", _two(), "deny"),
        Example(
            "a high priority that is not offered", asks("#SBATCH --qos=high", "python train.py", qos="high"), "deny"
        ),
        Example(
            "a misspelt option",
            asks("#SBATCH --memm=16G", "python train.py", problems=(Evidence(FILE, 2, "unknown option --memm"),)),
            "deny",
        ),
    ),
)
