"""generate_script: a script goes through the guard before it is written."""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from slurm_agent_tools.backends import pages
from slurm_agent_tools.backends.export import by_page, formats
from slurm_agent_tools.backends.export.exported_job import ExportFormat, JobToExport
from slurm_agent_tools.errors import InputError, SlurmError, StorageError
from slurm_agent_tools.insights.script_writing import Draft, body_elsewhere, check, compose, in_arguments
from slurm_agent_tools.models.decision import Decision, DecisionShown, RuleDecision, decision_shown
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.script_arguments import GenerateScript
from slurm_agent_tools.models.submission_answer import GenerateReply
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate, format_refusal
from slurm_agent_tools.scripts.reader import ReadsScripts, read_script
from slurm_agent_tools.services import project_paths, submission_facts
from slurm_agent_tools.services.context import Caller, ClusterContext, new_id
from slurm_agent_tools.services.handover import GENERATED
from slurm_agent_tools.services.project_paths import read


@dataclass(frozen=True, slots=True)
class DraftedScript:
    """A script that was composed and judged, and is not written. `commands`: by which a person starts it elsewhere."""

    ask: GenerateScript
    draft: Draft
    file: Judged
    commands: list[str]
    decision: Decision


async def drafted(context: ClusterContext, ask: GenerateScript) -> DraftedScript:
    """Compose and judge; nothing is written or logged. Raises InputError and ConfigError."""
    check(ask)
    ask, paged, holds = await _by_page(context, ask)
    elsewhere = formats.chosen(ask)
    draft = compose(
        ask,
        partitions=await _partitions(context) if elsewhere is None else None,
        limits=context.policy.policy.limits,
        mail_user=context.settings.mail_user,
        now=context.clock.now(),
        suffix=secrets.token_hex(3),
        records=await submission_facts.records(context, ask.name, ask=elsewhere is None),
    )
    data, read_as = draft.script.encode(), posixpath.join(GENERATED, draft.file_name)
    draft = replace(draft, reasons=[*paged, *draft.reasons])
    draft, file, commands = _written(ask, draft, elsewhere, context.settings.mail_user, holds)
    decision = await judge_script(context, data, read_as, file, justification=ask.justification)
    return DraftedScript(ask, draft, file, commands, decision)


async def generate_script(context: ClusterContext, ask: GenerateScript, caller: Caller) -> GenerateReply:
    """Compose, judge, then write a new file; submits nothing. Raises InputError and StorageError."""
    made = await drafted(context, ask)
    draft, file, decision = made.draft, made.file, made.decision
    await context.log_decision(caller, decision, "generate_script", "decided", path=file.path, size=file.size)
    if decision.verdict != "allow":
        return _blocked(context, made.ask, draft, decision)
    real = await project_paths.resolve(context.here, "name", file.path)
    if not await context.files.write_new(real, draft.script.encode(), mode=0o700):
        raise StorageError(f"{file.path} exists already", hint="Call again: the name holds a random part.")
    return GenerateReply(
        status="written",
        summary=f"Wrote {file.path}. {_next(made.commands)}",
        as_of=context.clock.now(),
        path=file.path,
        script=draft.script,
        reasons=draft.reasons,
        manual_commands=made.commands,
        decision=decision_shown(decision),
    )


_Holds = Callable[[JobToExport], None]
"""Raises InputError for a job that is more than the place it goes to has."""


async def _by_page(context: ClusterContext, ask: GenerateScript) -> tuple[GenerateScript, list[str], _Holds | None]:
    """The request with what the page of its backend adds, and its check. Raises InputError and ConfigError."""
    if ask.backend is None:
        return ask, [], None
    found = await anyio.to_thread.run_sync(pages.found_pages, Path(context.project))
    page = next((one for one in found if one.name == ask.backend), None)
    if page is None:
        hint = f"There is: {', '.join(one.name for one in found) or 'no page yet'}. `backends new` makes one."
        raise InputError("backend", ask.backend, "has no page", hint=hint)
    return *by_page.by_page(ask, page), partial(by_page.check_limits, page, by_page.queue_of(ask, page))


@dataclass(frozen=True, slots=True)
class Judged:
    """The file to be written: where, its bytes, whether this cluster is to run it, and what rented machines cost."""

    path: str
    size: int
    here: bool = True
    hourly_price: float | None = None


def _written(
    ask: GenerateScript,
    draft: Draft,
    elsewhere: ExportFormat | None,
    mail_user: str | None,
    holds: _Holds | None,
) -> tuple[Draft, Judged, list[str]]:
    """The draft as the format has it, its file, and the commands for a person. Raises InputError."""
    path = posixpath.join(GENERATED, draft.file_name)
    if elsewhere is None:
        return draft, Judged(path, len(draft.script.encode())), []
    body = body_elsewhere(ask, draft.request)
    job = formats.job_to_export(ask, draft.request, body, draft.file_name, mail_user)
    if holds is not None:
        holds(job)
    path = path.removesuffix(".sh") + elsewhere.suffix
    draft = replace(draft, script=elsewhere.write(job), reasons=[*draft.reasons, *elsewhere.notes(job)])
    return draft, Judged(path, len(draft.script.encode()), False, job.hourly_price), list(elsewhere.command(job, path))


def _next(commands: Sequence[str]) -> str:
    return f"Nothing was started: leave `{commands[0]}` to a person." if commands else "Submit it with submit_job."


def _blocked(context: ClusterContext, ask: GenerateScript, draft: Draft, decision: Decision) -> GenerateReply:
    decision = in_arguments(decision, ask)
    reason = format_refusal(decision)
    human = decision.verdict == "approve"
    return GenerateReply(
        status="blocked",
        summary=f"No script was written: {reason}",
        as_of=context.clock.now(),
        script=draft.script,
        reasons=draft.reasons,
        blocker="approval" if human else "policy",
        reason=reason,
        human_action_required=human,
        decision=decision_shown(decision),
    )


def refused(decision: DecisionShown) -> list[RuleDecision]:
    """The rules that stand against it."""
    return [rule for rule in decision.rules if rule.outcome in {"deny", "justify", "approve"}]


# --- the guard without a submission ------------------------------------------------------------------------------


async def judge_script(
    context: ClusterContext,
    data: bytes,
    path: str,
    file: Judged | None = None,
    *,
    arguments: Mapping[str, str] | None = None,
    justification: str | None = None,
    reader: ReadsScripts = read_script,
) -> Decision:
    """The rules that need no more of the cluster than its partitions, over a script's text, and over `file`."""
    reading, _ = await read(context, data, path, reader, arguments=arguments)
    real = await project_paths.resolve(context.here, "path", file.path) if file else None
    evaluation = EvaluationContext(
        context.policy,
        context.project,
        tool="generate_script" if file else "validate_config",
        decision_id=new_id(),
        partitions=await _partitions(context) if file is None or file.here else None,
        path=real,
        path_exists=real is not None and await context.files.stat(real) is not None,
        size=file.size if file else None,
        hourly_price=file.hourly_price if file else None,
        justification=justification,
    )
    return evaluate(reading, evaluation)


async def _partitions(context: ClusterContext) -> dict[str, Partition] | None:
    """What the cluster offers, where it can be asked: drafting and checking go on without it."""
    try:
        return dict(await context.slurm.partitions())
    except SlurmError:
        return None
