"""Which backend and partition a job should go to: facts are gathered, seven questions answer, a fallback is noted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from statistics import median

from slurm_agent_tools.backends import places
from slurm_agent_tools.backends.choose import Choice, choose
from slurm_agent_tools.backends.pages import Kind
from slurm_agent_tools.backends.places import BackendPlace, Figures, JobNeed
from slurm_agent_tools.errors import InputError, SlurmError
from slurm_agent_tools.insights.accounting_history import accounting_history
from slurm_agent_tools.insights.sizing import percentile
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.backend_answer import (
    AlternativeShown,
    ChooseReply,
    CostShown,
    ExpectedShown,
    NextCall,
    QuantilesShown,
)
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.toolset_arguments import ChooseBackend
from slurm_agent_tools.services import backend_facts, submission_facts
from slurm_agent_tools.services.backend_facts import BackendFacts
from slurm_agent_tools.services.context import Caller, ClusterContext, ContextRegistry
from slurm_agent_tools.services.project_paths import asked_of
from slurm_agent_tools.services.submission_request import open_request, tried_before
from slurm_agent_tools.units import (
    UNLIMITED,
    ArraySpec,
    format_duration,
    format_memory,
    how_many,
    parse_memory,
    parse_span,
)

_FORMATS: Mapping[Kind, str] = {"pbs": "pbs", "kubernetes": "kubernetes", "skypilot": "skypilot"}


async def choose_backend(
    registry: ContextRegistry, context: ClusterContext, ask: ChooseBackend, caller: Caller
) -> ChooseReply:
    """The answer; `context` is the project's. Raises InputError and ConfigError."""
    if (ask.script is None) == (ask.resources is None):
        hint = "Give the batch script, or resources such as {gpus: 1, memory: 16G} with expected."
        raise InputError("script or resources", ask.script, "is needed, and only one of them", hint=hint)
    if ask.args and ask.script is None:
        raise InputError("args", ask.args, "are a script's", hint="Leave them out, or give script.")
    tried = await _tried(context, ask, caller)
    need = await _need(context, ask, tried)
    facts = await backend_facts.gather(registry, context, need, ask.cluster)
    if need.run is None and not tried.new and any(places.misfit(one, need) is None for one in facts.places):
        hint = 'No run of it is known, and it names no time limit. Give expected, such as "2h".'
        raise InputError("expected", None, "is needed", hint=hint)  # where it fits nowhere, its length changes nothing
    choice = choose(need, facts.places)
    if tried.why:
        choice = replace(choice, reasons=(*choice.reasons, tried.why))
    if choice.fallback is not None:
        await _note(context, caller, ask, choice)
    own = (await asked_of(context, "script", ask.script)).array if ask.script is not None and ask.jobs == 1 else None
    return _reply(context, ask, choice, facts, own)


async def _note(context: ClusterContext, caller: Caller, ask: ChooseBackend, choice: Choice) -> None:
    """Write the fallback down in the decision log, which `policy log` shows."""
    chosen = choice.place.name if choice.place is not None else None
    await context.log_decision(
        caller, context.own_decision("allow"), "choose_backend", "fallback",
        script=ask.script, chosen=chosen, note=choice.fallback,
    )  # fmt: skip


# --- what is to run ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """What one job asks for, and by what its earlier runs are found."""

    resources: Resources
    name: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class _Tried:
    """Whether the configuration is new; None where that is not known, or where it is too small to be asked about."""

    new: bool | None
    why: str = ""


async def _tried(context: ClusterContext, ask: ChooseBackend, caller: Caller) -> _Tried:
    """As the caller says, else as the ladder of a script's configuration knows."""
    if ask.new_configuration is not None or ask.script is None:
        return _Tried(ask.new_configuration)
    request = await open_request(context, SubmitJob(script=ask.script, args=ask.args), caller)
    try:
        snapshot = await submission_facts.take_snapshot(context, request.effective, fresh=False)
        known = await submission_facts.live_facts(context, snapshot, request.reading)
        ladder = await tried_before(context, request, known)
    except SlurmError as error:
        return _Tried(None, f"Whether this configuration was tried is not known: {error.message}.")
    if ladder is None:
        return _Tried(None)
    if ladder.problem is not None:
        return _Tried(None, f"Which configuration this is cannot be told: {ladder.problem}.")
    smoke = ladder.newest("smoke")
    if smoke is not None and smoke.state == "failed":
        return _Tried(True, f"Its smoke run, job {smoke.job_id}, did not pass: {smoke.why}.")
    passed = ladder.validated
    return _Tried(True) if passed is None else _Tried(False, f"Job {passed.job_id} ({passed.stage}) of it passed.")


async def _need(context: ClusterContext, ask: ChooseBackend, tried: _Tried) -> JobNeed:
    asked = await _resources(context, ask)
    run = await _run_time(context, ask, asked)
    resources = asked.resources
    tasks = resources.array_tasks if ask.jobs == 1 else None
    return JobNeed(
        run=run,
        gpus=resources.gpus or 0,
        cpus=resources.cpus,
        memory_bytes=resources.memory_bytes,
        nodes=resources.nodes,
        jobs=tasks or ask.jobs,
        restartable=ask.restartable,
        urgent=ask.urgency == "urgent",
        new=tried.new,
        budget=ask.budget,
    )


async def _resources(context: ClusterContext, ask: ChooseBackend) -> _Asked:
    if ask.script is not None:
        found = await asked_of(context, "script", ask.script)
        return _Asked(found.requested, found.name, found.path)
    wanted = ask.resources
    memory = None if wanted is None or wanted.memory is None else _read("resources.memory", wanted.memory, parse_memory)
    return _Asked(
        Resources()
        if wanted is None
        else Resources(gpus=wanted.gpus, cpus=wanted.cpus, nodes=wanted.nodes, memory_bytes=memory)
    )


async def _run_time(context: ClusterContext, ask: ChooseBackend, asked: _Asked) -> Figures | None:
    """As the caller says, else as its runs took, else its time limit; None where nothing is known."""
    if ask.expected is not None:
        return Figures(_read("expected", ask.expected, parse_span), source="as the caller expects")
    limit = asked.resources.time_limit_seconds
    if asked.path is not None:
        found = await _earlier(context, asked)
        if found is not None:
            return found
    if limit is None or limit == UNLIMITED:
        return None
    return Figures(limit, source="its time limit, as no run of it is known; it may well be shorter")


async def _earlier(context: ClusterContext, asked: _Asked) -> Figures | None:
    """How long its completed runs took; smoke runs are shorter by design, and do not count."""
    known = await accounting_history(context, name=asked.name, script_path=asked.path)
    staged = await context.db(context.store.staged, context.owner)
    short = {str(run.job_id) for run in staged if run.stage == "smoke"}
    took = [
        (record.usage.elapsed_seconds, record.tasks)
        for record in known.records
        if record.state == "COMPLETED"
        and record.job_id not in short
        and record.usage is not None
        and record.usage.elapsed_seconds
    ]
    if not took:
        return None
    runs = sum(weight for _, weight in took)
    source = f"{how_many(runs, 'completed run')} of this job, by name or script"
    most = percentile(took)
    return Figures(round(median(seconds for seconds, _ in took)), None if most is None else round(most), runs, source)


def _read(field: str, text: str, parse: Callable[[str], int]) -> int:
    try:
        found = parse(text)
    except ValueError as error:
        raise InputError(field, text, str(error), hint='Write it as "2h", "90min" or "16G".') from error
    if found == UNLIMITED:
        raise InputError(field, text, "is no length of time", hint='Write it as "2h".')
    return found


# --- the answer -------------------------------------------------------------------------------------------------------


def _reply(
    context: ClusterContext, ask: ChooseBackend, choice: Choice, facts: BackendFacts, own: ArraySpec | None
) -> ChooseReply:
    place = choice.place
    return ChooseReply(
        status=choice.status,
        summary=_summary(choice),
        as_of=context.clock.now(),
        question=choice.question,
        backend=None if place is None else place.backend,
        partition=None if place is None else place.partition or None,
        stage=None if place is None else choice.stage,
        reasons=[*choice.reasons, *_beyond(context, choice)],
        expected=None if place is None else _expected(place, choice.need),
        alternatives=[
            AlternativeShown(
                backend=one.place.backend, partition=one.place.partition or None, why_not=one.why_not,
                expected=None if choice.need.run is None else _expected(one.place, choice.need),
            )
            for one in choice.alternatives
        ],
        question_for_person=choice.ask,
        fallback=choice.fallback,
        contradictions=list(facts.contradictions),
        next=None if place is None else _next(context, ask, choice, place, own),
    )  # fmt: skip


def _summary(choice: Choice) -> str:
    if choice.status == "ask_person":
        return "A person decides where it runs: put question_for_person to one, and call again with the answer."
    if choice.place is None:
        return "No backend can run it as it is; each one says why not."
    what = {"smoke": "A smoke run of it goes", "pilot": "It goes as a pilot"}.get(choice.stage, "It goes")
    chain = f", as a chain of {choice.links} jobs" if choice.links > 1 else ""
    return f"{what} to {choice.place.name}{chain}."


def _beyond(context: ClusterContext, choice: Choice) -> list[str]:
    """What the policy asks a person for, whichever place it is."""
    limits = context.policy.policy.limits
    pairs = (
        ("GPU", places.gpu_hours(choice.need, most=True), limits.gpu_hours_per_job),
        ("CPU", places.cpu_hours(choice.need, most=True), limits.cpu_hours_per_job),
    )
    return [
        f"The policy lets {limit:g} {unit} hours through in one job; this is up to {hours:.1f}, so a person is asked."
        for unit, hours, limit in pairs
        if choice.place is not None and limit is not None and hours > limit
    ]


def _expected(place: BackendPlace, need: JobNeed) -> ExpectedShown:
    free = places.starts_now(place, need)
    waited = _quantiles(place.wait)
    if free and waited is None:
        waited = QuantilesShown(median=0, source="what it asks for is free now")
    money = places.cost(place, need)
    return ExpectedShown(
        wait=waited,
        run=_quantiles(need.run),
        cost=CostShown(
            amount=None if money is None else round(money, 2),
            currency=place.currency if money is not None else None,
            gpu_hours=round(places.gpu_hours(need), 2) if need.gpus else None,
            cpu_hours=round(places.cpu_hours(need), 2),
            priced_on=place.priced_on if money is not None else None,
        ),
    )


def _quantiles(found: Figures | None) -> QuantilesShown | None:
    if found is None:
        return None
    return QuantilesShown(median=found.median, p95=found.p95, basis=found.basis, source=found.source)


def _next(
    context: ClusterContext, ask: ChooseBackend, choice: Choice, place: BackendPlace, own: ArraySpec | None
) -> NextCall:
    """The call that brings it there. Another scheduler's script is written, and a person starts it."""
    array, policy = _array(choice, place, own), context.policy.policy
    smoke = min(places.SMOKE_SECONDS, policy.smoke_first.smoke_time_limit)
    if place.kind in _FORMATS:
        return _elsewhere(choice, place, array, smoke, policy.defaults.time_limit)
    arguments: dict[str, object] = {"partition": place.partition} | array
    if place.cluster != context.cluster:
        arguments["cluster"] = place.cluster
    if choice.stage == "smoke":
        arguments |= {"time_limit": format_duration(min(smoke, place.time_limit or smoke))}
    if ask.script is None:
        return _written(choice, arguments, "Add name and command; then submit_job.")
    if choice.stage != "production":
        arguments["stage"] = choice.stage
    then = None
    if choice.links > 1:
        then = f"Then {choice.links - 1} more, each with dependency afterany:JOB_ID of the one before."
    given = {"script": ask.script} | ({"args": ask.args} if ask.args else {})
    return NextCall(tool="submit_job", arguments=given | arguments, then=then)


def _array(choice: Choice, place: BackendPlace, own: ArraySpec | None) -> dict[str, object]:
    """Several jobs are one array, with as many tasks at once as may be; SkyPilot has none.

    A script's `own` array keeps its numbers, and of it a smoke run takes the first; submit_job reads it in the script.
    """
    jobs, elsewhere = choice.need.jobs, place.kind in _FORMATS
    if choice.stage == "smoke" and own is not None and own.count > 1:
        return {"array": str(own.first)}
    if jobs == 1 or place.kind == "skypilot":
        return {}
    numbers, limit = (f"0-{jobs - 1}", None) if own is None else (own.text.partition("%")[0].strip("[]"), own.limit)
    most = min(limit or jobs, place.max_jobs or jobs)
    if own is not None and most == min(limit or jobs, jobs) and not elsewhere:
        return {}
    return {"array": numbers + (f"%{most}" if most < jobs else "")}


def _elsewhere(choice: Choice, place: BackendPlace, array: Mapping[str, object], smoke: int, usual: int) -> NextCall:
    """A script for PBS, Kubernetes or SkyPilot, with the names that its page gives.

    Seconds that a `smoke` run may take, and those that a script gets where nobody names them (`usual`).
    """
    need, longest = choice.need, smoke if choice.stage == "smoke" else usual
    limit = min(longest, place.time_limit or longest)
    arguments: dict[str, object] = {
        "format": _FORMATS[place.kind],
        "backend": place.backend,
        "partition": place.queue,
        **array,
    }
    arguments |= {"time_limit": format_duration(limit)} if limit < usual else {}
    if need.gpus and place.kind == "skypilot":
        arguments["gpu_type"] = None if place.gpu_type is None else place.gpu_type.upper()
    if place.kind == "skypilot" and place.currency == "USD" and place.costs_money:
        hourly = (place.gpu_hour or 0) * need.gpus + (place.cpu_hour or 0) * (need.cpus or 1)
        arguments["max_hourly_cost"] = round(hourly, 2) or None
    what = "name, command and image" if place.kind == "kubernetes" else "name and command"
    more = f"; {need.jobs} of them" if need.jobs > 1 and not array else ""
    return _written(choice, arguments, f"Add {what}; a person starts what it writes on {place.backend}{more}.")


def _written(choice: Choice, arguments: Mapping[str, object], then: str) -> NextCall:
    """A script has to be written first: generate_script takes what the job needs."""
    need = choice.need
    wanted = {
        "gpus": need.gpus, "cpus": need.cpus, "nodes": need.nodes if (need.nodes or 1) > 1 else None,
        "memory": None if need.memory_bytes is None else format_memory(need.memory_bytes),
    }  # fmt: skip
    told = {name: value for name, value in (wanted | dict(arguments)).items() if value is not None}
    return NextCall(tool="generate_script", arguments=told, then=then)
