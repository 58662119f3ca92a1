"""One request on its way through the guard: what was asked, what was read, what was decided, how it is answered."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from slurm_agent_tools.errors import InputError, SlurmUnreachable
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.decision import Advised, Blocker, Consent, Decision, decision_shown
from slurm_agent_tools.models.job import LONGEST_RUN_ID, is_plain_run_id
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.request import JobRequest, Pin, Resources, ScriptReading
from slurm_agent_tools.models.submission_answer import SubmitReply
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate, format_refusal
from slurm_agent_tools.policy.pins import offered
from slurm_agent_tools.policy.plan import LiveFacts
from slurm_agent_tools.services import decisions, present, project_paths
from slurm_agent_tools.services.context import Caller, ClusterContext, new_id
from slurm_agent_tools.services.project_paths import read
from slurm_agent_tools.units import parse_array, parse_time_limit


@dataclass(frozen=True, slots=True)
class SubmissionRequest:
    """One request on its way through the guard. `options` go on sbatch's command line before the pins."""

    ask: SubmitJob
    caller: Caller
    reading: ScriptReading
    data: bytes
    options: tuple[str, ...]
    key: str
    key_given: bool
    pinned: tuple[Pin, ...] = ()
    request: JobRequest = JobRequest()
    resources: Resources = Resources()
    decision: Decision | None = None
    advised: Advised | None = None  # what is known of its wait, size and time
    away: SlurmUnreachable | None = None  # why the script's files were not read where it runs

    @property
    def name(self) -> str:
        """The job's name: as asked, as in the script, or the script's file name (sbatch's own default)."""
        return self.ask.job_name or self.request.name or self.reading.path.rsplit("/", 1)[-1]

    @property
    def request_sha256(self) -> str:
        """The same script with the same arguments and options has the same hash."""
        priority = [self.ask.priority] if self.ask.priority in {"low", "high"} else []
        parts = [self.reading.sha256, *self.options, *priority, "--", *(self.ask.args or ())]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def as_decided(self, decision: Decision, advised: Advised | None = None) -> SubmissionRequest:
        """The same with what was decided on it."""
        return replace(
            self, decision=decision, pinned=decision.pinned, request=decision.request, resources=decision.resources,
            advised=advised or self.advised,
        )  # fmt: skip

    @property
    def verdict(self) -> Decision:
        """The decision; only asked for after the case was judged."""
        if self.decision is None:
            raise RuntimeError("the case was not judged")
        return self.decision


async def open_request(context: ClusterContext, ask: SubmitJob, caller: Caller) -> SubmissionRequest:
    """Read and check everything that the caller named. Raises InputError."""
    if ask.priority is not None:
        offered(ask.priority, context.policy.policy)
    limit = context.policy.policy.sizes.script_bytes
    project_files = await project_paths.either(context, "script", ask.script)
    real, data = await project_paths.read_script(project_files, "script", ask.script, limit=limit)
    arguments = _arguments(ask)
    reading, away = await read(
        context, data, project_paths.relative(project_files, real), arguments=arguments, args=ask.args or ()
    )
    key = (
        project_paths.check_text("idempotency_key", ask.idempotency_key, limit=200) if ask.idempotency_key else new_id()
    )
    return SubmissionRequest(
        ask, caller, reading, data,
        options=tuple(f"--{name}={value}" for name, value in arguments.items()),
        key=key, key_given=ask.idempotency_key is not None, request=reading.request, away=away,
    )  # fmt: skip


def _arguments(ask: SubmitJob) -> dict[str, str]:
    """Checked options for sbatch's command line, each from a named field."""
    found: dict[str, str] = {}
    for field, option in (
        ("job_name", "job-name"), ("partition", "partition"), ("time_limit", "time"),
        ("dependency", "dependency"), ("array", "array"),
    ):  # fmt: skip
        value: str | None = getattr(ask, field)
        if value is not None:
            found[option] = project_paths.check_text(field, value, limit=200)
    for field, option, parse in (("time_limit", "time", parse_time_limit), ("array", "array", parse_array)):
        try:
            parse(found[option]) if option in found else None
        except ValueError as error:
            raise InputError(field, found[option], str(error)) from error
    for index, word in enumerate(ask.args or ()):
        if "\0" in word:
            raise InputError(f"args[{index}]", word, "contains a NUL byte", hint="Remove it.")
    if ask.run_id is not None and not is_plain_run_id(ask.run_id):
        hint = f"Use letters, digits and ._:@/+- only, at most {LONGEST_RUN_ID}."
        raise InputError("run_id", ask.run_id, "does not go into the job's comment as it is", hint=hint)
    if ask.time_budget is not None:
        from slurm_agent_tools.insights.script_size import budget_seconds  # noqa: PLC0415 - few calls have one

        budget_seconds(ask.time_budget)
    return found


async def judge(
    context: ClusterContext,
    case: SubmissionRequest,
    known: LiveFacts | None,
    *,
    partitions: Mapping[str, Partition] | None = None,
    grant: Consent | None = None,
) -> SubmissionRequest:
    """Pins, numbers and verdict; the decision is in the log before anything else happens."""
    evaluation = context_of(context, case, live=known, partitions=partitions, grant=grant, decision_id=new_id())
    judged = case.as_decided(evaluate(case.reading, evaluation))
    await log_decision(context, judged, "decided")
    return judged


def context_of(context: ClusterContext, case: SubmissionRequest, **facts: Any) -> EvaluationContext:
    """What a decision on this case rests on, with facts of the moment."""
    return EvaluationContext(
        policy=context.policy, project=context.project, user=context.owner.user, today=context.clock.now().date(),
        justification=case.ask.justification, priority=case.ask.priority, request_sha256=case.request_sha256,
        **facts,
    )  # fmt: skip


async def log_decision(context: ClusterContext, case: SubmissionRequest, event: str, **more: object) -> None:
    """One line in the decision log for this request."""
    await decisions.log(
        context,
        case.caller,
        case.verdict,
        "submit_job",
        event,
        script=case.reading.path,
        script_sha256=case.reading.sha256,
        request_sha256=case.request_sha256,
        options=list(case.options),
        pinned=[pin.option for pin in case.pinned],
        requested=present.resources(case.resources).model_dump(exclude_none=True),
        args=list(case.ask.args or ()),
        job_name=case.name,
        run_id=case.ask.run_id,
        justification=case.ask.justification or case.request.justification,
        dry_run=case.ask.dry_run,
        **more,
    )


async def hand_over(
    context: ClusterContext, case: SubmissionRequest, blocker: Blocker, reason: str, *, approval_id: str | None = None
) -> SubmitReply:
    """Leave a script and commands for a person, and say so. `approval_id`: what the person can approve instead."""
    from slurm_agent_tools.services import handover  # noqa: PLC0415 - nothing is left for a person where a job is sent

    left = await handover.hand_over(
        context, name=case.name, script=case.data, decision=case.verdict, blocker=blocker,
        options=[*case.options, *(pin.option for pin in case.pinned)], args=case.ask.args or (),
    )  # fmt: skip
    answer = blocked(context, case, blocker, human=True)
    approve = [] if approval_id is None else [handover.approve_command(context, approval_id)]
    summary = f"{case.name} was not submitted: {reason}\nA script for a person is at {left.artifact}."
    if approve:
        summary += f" A person can approve it with `{approve[0]}`; then call again."
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
    context: ClusterContext, case: SubmissionRequest, blocker: Blocker, *, human: bool, reason: str | None = None
) -> SubmitReply:
    """A refusal that left nothing behind."""
    reason = reason or format_refusal(case.verdict)
    answer = reply(context, case, "blocked", f"{case.name} was not submitted: {reason}")
    return answer.model_copy(update={"blocker": blocker, "reason": reason, "human_action_required": human})


def reply(context: ClusterContext, case: SubmissionRequest, status: str, summary: str) -> SubmitReply:
    """An answer with everything that is known of the case."""
    answer = SubmitReply(
        status=status,
        summary=summary,
        as_of=context.clock.now(),
        pinned=list(case.pinned),
        requested=present.resources(case.resources),
        decision=None if case.decision is None else decision_shown(case.decision),
        idempotency_key=case.key,
        run_id=case.ask.run_id,
    )
    if case.advised is None:
        return answer
    summary += present.advice_summary(case.advised)
    return answer.model_copy(update={**present.advice(case.advised), "summary": summary})
