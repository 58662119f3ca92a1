"""One request on its way through the guard: what was asked, what was read, what was decided, how it is answered."""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from slurm_agent_tools.errors import InputError, SlurmUnreachable
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.decision import Consent, Decision, decision_shown
from slurm_agent_tools.models.job import LONGEST_RUN_ID, GivenEstimate, is_plain_run_id
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, Pin, ScriptReading
from slurm_agent_tools.models.shapes import Blocker, Channel, ResourcesShown
from slurm_agent_tools.models.submission_answer import Advised, SubmitReply
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate, format_refusal
from slurm_agent_tools.policy.plan import LiveFacts, offered
from slurm_agent_tools.scripts.reader import LONG, in_turn, read_script
from slurm_agent_tools.services import project_paths
from slurm_agent_tools.services.context import Caller, ClusterContext, new_id
from slurm_agent_tools.services.project_paths import read
from slurm_agent_tools.units import format_duration, parse_array, parse_span, parse_time_limit

if TYPE_CHECKING:
    from slurm_agent_tools.backends.stages import Ladder

_MOST_ARGS = 16 * 2**10
"""Bytes of all arguments of a script: a person reads each, and Slurm 22.05 tells them to all who list jobs."""


@dataclass(frozen=True, slots=True)
class GivenTicket:
    """What a site's service answered: the mark and the comment's word of an allowed job, else what a person is asked.

    `note`: why an earlier answer of a person does not count.
    """

    token: str | None = None
    word: str = ""
    question: str | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """One request on its way through the guard. `options` go on sbatch's command line before the pins."""

    arguments: SubmitJob
    caller: Caller
    reading: ScriptReading
    data: bytes
    options: tuple[str, ...]
    key: str
    key_given: bool
    pinned: tuple[Pin, ...] = ()
    effective: JobRequest = JobRequest()
    resources: Resources = Resources()
    decision: Decision | None = None
    advised: Advised | None = None  # what is known of its wait, size and time
    foretold: tuple[GivenEstimate, ...] = ()
    away: SlurmUnreachable | None = None  # why the script's files were not read where it runs
    work: str = ""  # hash of the script's bytes and its arguments
    ladder: Ladder | None = None  # its configuration, where the policy asked for what was tried of it
    ticket: GivenTicket | None = None  # what the site's service gave for it
    alone: bool = False  # no other job waited

    @property
    def name(self) -> str:
        """The job's name: as asked, as in the script, or the script's file name (sbatch's own default)."""
        return self.arguments.job_name or self.effective.name or self.reading.path.rsplit("/", 1)[-1]

    @property
    def request_sha256(self) -> str:
        """The same script with the same arguments and options has the same hash."""
        priority = [self.arguments.priority] if self.arguments.priority in {"low", "high"} else []
        stage = [] if self.arguments.stage is None else [f"stage={self.arguments.stage}"]
        parts = [self.reading.sha256, *self.options, *priority, *stage, "--", *(self.arguments.args or ())]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def as_decided(self, decision: Decision, advised: Advised | None = None) -> SubmissionRequest:
        """The same with what was decided on it."""
        return replace(
            self, decision=decision, pinned=decision.pinned, effective=decision.request, resources=decision.resources,
            advised=advised or self.advised,
        )  # fmt: skip

    @property
    def verdict(self) -> Decision:
        """The decision; only asked for after the request was judged."""
        if self.decision is None:
            raise RuntimeError("the request was not judged")
        return self.decision


async def open_request(context: ClusterContext, arguments: SubmitJob, caller: Caller) -> SubmissionRequest:
    """Read and check everything that the caller named. Raises InputError."""
    if arguments.priority is not None:
        offered(arguments.priority, context.policy.policy)
    if len("".join(arguments.args or ()).encode(errors="replace")) > _MOST_ARGS:
        hint = "Write them into a file of the project, and give its path."
        raise InputError("args", None, f"hold more than {_MOST_ARGS} bytes", hint=hint)
    limit = context.policy.policy.sizes.script_bytes
    project_files = await project_paths.either(context, "script", arguments.script)
    real, data = await project_paths.read_script(project_files, "script", arguments.script, limit=limit)
    options = _sbatch_options(arguments)
    shown = project_paths.relative(project_files, real)
    reading, away = await read(context, data, shown, read_script, arguments=options, args=arguments.args or ())
    key = (
        project_paths.check_text("idempotency_key", arguments.idempotency_key, limit=200)
        if arguments.idempotency_key
        else new_id()
    )
    work = [reading.sha256, *(arguments.args or ())]
    return SubmissionRequest(
        arguments, caller, reading, data,
        options=tuple(f"--{name}={value}" for name, value in options.items()),
        key=key, key_given=arguments.idempotency_key is not None, effective=reading.request, away=away,
        work=hashlib.sha256("\0".join(work).encode("utf-8", "surrogateescape")).hexdigest(),
    )  # fmt: skip


def _sbatch_options(arguments: SubmitJob) -> dict[str, str]:
    """Checked options for sbatch's command line, each from a named field."""
    options: dict[str, str] = {}
    for field, option in (
        ("job_name", "job-name"), ("partition", "partition"), ("time_limit", "time"),
        ("dependency", "dependency"), ("array", "array"),
    ):  # fmt: skip
        value: str | None = getattr(arguments, field)
        if value is not None:
            options[option] = project_paths.check_text(field, value, limit=200)
    if re.search(r"\d\s*[A-Za-z]", options.get("time", "")):
        with contextlib.suppress(ValueError):  # what is no duration is refused as no time limit
            options["time"] = format_duration(parse_span(options["time"]))
    for field, option, parse in (("time_limit", "time", parse_time_limit), ("array", "array", parse_array)):
        try:
            parse(options[option]) if option in options else None
        except ValueError as error:
            raise InputError(field, options[option], str(error)) from error
    for index, word in enumerate(arguments.args or ()):
        if "\0" in word:
            raise InputError(f"args[{index}]", word, "contains a NUL byte", hint="Remove it.")
    if arguments.run_id is not None and not is_plain_run_id(arguments.run_id):
        hint = f"Use letters, digits and ._:@/+- only, at most {LONGEST_RUN_ID}."
        raise InputError("run_id", arguments.run_id, "does not go into the job's comment as it is", hint=hint)
    if arguments.time_budget is not None:
        from slurm_agent_tools.insights.script_size import budget_seconds  # noqa: PLC0415 - few calls have one

        budget_seconds(arguments.time_budget)
    return options


async def judge(
    context: ClusterContext,
    request: SubmissionRequest,
    known: LiveFacts | None,
    *,
    partitions: Mapping[str, Partition] | None = None,
    grant: Consent | None = None,
    decide: Callable[[ScriptReading, EvaluationContext], Decision] = evaluate,
) -> SubmissionRequest:
    """Pins, numbers and verdict; the decision is in the log before anything else happens."""
    evaluation = context_of(context, request, live=known, partitions=partitions, grant=grant, decision_id=new_id())
    size, script = len(request.data), request.reading
    decided = decide(script, evaluation) if size < LONG else await in_turn(size, decide, script, evaluation)
    judged = request.as_decided(decided)
    (tried,) = (rule for rule in judged.verdict.rules if rule.id == "smoke-first")
    # A stage that is named counts once the rule is on.
    named_and_off = request.arguments.stage is not None and tried.outcome == "not_evaluated"
    if known is not None and known.ladder is None and (tried.outcome == "deny" or named_and_off):
        known = replace(known, ladder=await _ladder(context, judged, known))
        decided = await in_turn(size, decide, script, replace(evaluation, live=known))
        judged = replace(judged.as_decided(decided), ladder=known.ladder)
    await log_decision(context, judged, "decided")
    return judged


async def tried_before(context: ClusterContext, request: SubmissionRequest, known: LiveFacts) -> Ladder | None:
    """What was tried of a request that smoke-first asks about; None for one that it does not. Raises StorageError."""
    facts = context_of(context, request, live=known)
    judged = request.as_decided(await in_turn(len(request.data), evaluate, request.reading, facts))
    (tried,) = (rule for rule in judged.verdict.rules if rule.id == "smoke-first")
    return await _ladder(context, judged, known) if tried.outcome == "deny" else None


async def _ladder(context: ClusterContext, request: SubmissionRequest, known: LiveFacts) -> Ladder:
    """What was tried of this request's configuration. Raises StorageError."""
    from slurm_agent_tools.backends import pages  # noqa: PLC0415 - few jobs are that large or name a stage
    from slurm_agent_tools.insights import stage_facts  # noqa: PLC0415 - as above
    from slurm_agent_tools.services import dispatch, jobs  # noqa: PLC0415 - as above

    limit, longest = request.resources.time_limit_seconds or 1, context.policy.policy.smoke_first.smoke_time_limit
    asked = stage_facts.StageQuestion(
        request.reading, request.effective, request.resources, request.arguments.args or (),
        dispatch.job_environment(context), context.there.files, context.elsewhere is not None,
        frozenset(job.job_id.base for job in known.active), known.partitions, max(1, min(limit, longest)),
        await context.db(pages.purposes, context.settings.project_root.resolve(), context.cluster),
    )  # fmt: skip
    return await stage_facts.ladder(context, asked, partial(jobs.settle_all, context))


def context_of(context: ClusterContext, request: SubmissionRequest, **facts: Any) -> EvaluationContext:
    """What a decision on this request rests on, with facts of the moment."""
    return EvaluationContext(
        policy=context.policy, project=context.project, user=context.owner.user, today=context.clock.now().date(),
        justification=request.arguments.justification, priority=request.arguments.priority,
        request_sha256=request.request_sha256, stage=request.arguments.stage, **facts,
    )  # fmt: skip


async def log_decision(context: ClusterContext, request: SubmissionRequest, event: str, **more: object) -> None:
    """One line in the decision log for this request."""
    await context.log_decision(
        request.caller,
        request.verdict,
        "submit_job",
        event,
        script=request.reading.path,
        script_sha256=request.reading.sha256,
        request_sha256=request.request_sha256,
        options=list(request.options),
        pinned=[pin.option for pin in request.pinned],
        requested=ResourcesShown.of(request.resources).model_dump(exclude_none=True),
        args=list(request.arguments.args or ()),
        job_name=request.name,
        run_id=request.arguments.run_id,
        justification=request.arguments.justification or request.effective.justification,
        stage=request.arguments.stage,
        dry_run=request.arguments.dry_run,
        **more,
    )


async def hand_over(
    context: ClusterContext,
    request: SubmissionRequest,
    blocker: Blocker,
    reason: str,
    *,
    approval_id: str | None = None,
) -> SubmitReply:
    """Leave a script and commands for a person, and say so. `approval_id`: what the person can approve instead."""
    from slurm_agent_tools.services import handover  # noqa: PLC0415 - nothing is left for a person where a job is sent

    left = await handover.hand_over(
        context, name=request.name, script=request.data, decision=request.verdict, blocker=blocker,
        options=[*request.options, *(pin.option for pin in request.pinned)], args=request.arguments.args or (),
    )  # fmt: skip
    answer = blocked(context, request, blocker, human=True)
    approve = [] if approval_id is None else [handover.approve_command(context, approval_id)]
    summary = f"{request.name} was not submitted: {reason}\nA script for a person is at {left.artifact}."
    if approve:
        summary += f" A person can approve it with `{approve[0]}`; then call again."
        ways: tuple[Channel, ...] = ("terminal", "signed", "passkey")
        counts = context.policy.policy.approval_channels
        summary += f" That yes is {context.policy.worth(next(way for way in ways if way in counts))}."
    return answer.model_copy(
        update={
            "reason": reason,
            "summary": summary,
            "artifacts": [left.artifact],
            "manual_commands": [*approve, *left.commands],
            "approval_id": approval_id,
        }
    )


def blocked(
    context: ClusterContext, request: SubmissionRequest, blocker: Blocker, *, human: bool, reason: str | None = None
) -> SubmitReply:
    """A refusal that left nothing behind."""
    reason = reason or format_refusal(request.verdict)
    answer = reply(context, request, "blocked", f"{request.name} was not submitted: {reason}")
    return answer.model_copy(update={"blocker": blocker, "reason": reason, "human_action_required": human})


def reply(context: ClusterContext, request: SubmissionRequest, status: str, summary: str) -> SubmitReply:
    """An answer with everything that is known of the request."""
    answer = SubmitReply(
        status=status,
        summary=summary,
        as_of=context.clock.now(),
        pinned=list(request.pinned),
        requested=ResourcesShown.of(request.resources),
        decision=None if request.decision is None else decision_shown(request.decision),
        idempotency_key=request.key,
        run_id=request.arguments.run_id,
    )
    if request.advised is None:
        return answer
    if status == "dry_run":  # behind what went wrong nobody reads how large it is
        summary += request.advised.summary
    return answer.model_copy(update={**request.advised.shown, "summary": summary})
