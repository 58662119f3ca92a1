"""`launch`: a SkyPilot task is started once a person has agreed to exactly it, with its price and its end before them.

What the policy says of the same work on Slurm counts here. The program `sky`, which the user installs, is called; what
it gets is a copy of the task as it was read.
"""

from __future__ import annotations

import hashlib
import json
import posixpath
import secrets
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import anyio

from slurm_agent_tools.backends.export.skypilot_task import LARGEST, SkyPilotTask, read_task
from slurm_agent_tools.errors import AgentToolsError, InputError, StorageError
from slurm_agent_tools.models.decision import Decision, decision_shown
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.models.submission_answer import LaunchReply
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate, format_refusal
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.services import approval, handover, project_paths
from slurm_agent_tools.services.context import Caller, ClusterContext, new_id
from slurm_agent_tools.store.submissions import Approval
from slurm_agent_tools.text import plan_text, sanitize
from slurm_agent_tools.transport import process
from slurm_agent_tools.units import format_duration

_DRY_RUN, _LAUNCH = 300.0, 3600.0
"""Seconds that sky may take: for its dry run, and until a machine is there and the work has begun."""

_NEVER_BEGAN = 127
"""The exit code of a program that cannot be started, as shells give it."""

_LAST = 2000
"""Characters of sky's own words in an answer."""

_INSTALL = "python3 -m venv ~/.local/share/skypilot && ~/.local/share/skypilot/bin/pip install skypilot"


@dataclass(frozen=True, slots=True)
class LaunchPlan:
    """One task as it was read, and what the policy says of it. `path` is relative to the project."""

    path: str
    data: bytes
    task: SkyPilotTask
    reading: ScriptReading
    decision: Decision
    justification: str | None

    @property
    def approvals(self) -> list[str]:
        """The rules that ask for a person, beside the price."""
        return [f"{rule.id}: {rule.message}" for rule in self.decision.rules if rule.outcome == "approve"]


async def plan(context: ClusterContext, path: str, justification: str | None = None) -> LaunchPlan:
    """Read and judge a task. Raises InputError for what the policy cannot judge."""
    real, data = await project_paths.read_file(context.here, "task", path, limit=LARGEST)
    task, shown = read_task(data), project_paths.relative(context.here, real)
    reading, _ = await project_paths.read(context, task.script.encode(), f"{shown}.sh", read_script)
    evaluation = EvaluationContext(
        context.policy,
        context.project,
        decision_id=new_id(),
        user=context.owner.user,
        today=context.clock.now().date(),
        justification=justification,
        hourly_price=task.price_per_hour,
    )
    return LaunchPlan(shown, data, task, reading, evaluate(reading, evaluation), justification)


# --- what a person is asked -------------------------------------------------------------------------------------------


def task_of(item: Approval) -> Mapping[str, str | None] | None:
    """What a question about a launch is about: `task` and `justification`; None for one about a submission."""
    try:
        asked = json.loads(item.request or "null")
    except ValueError:
        return None
    return asked if isinstance(asked, dict) and "task" in asked else None


async def question(context: ClusterContext, wanted: LaunchPlan) -> Approval:
    """The question about this plan as it stands in the ledger; the same plan is asked about once at a time."""
    sha256 = _sha256(context, wanted)
    for item in await context.db(context.store.approvals.open, context.owner, sha256):
        if item.granted is None and item.plan == _text(context, wanted, item):
            return item
    now = context.clock.now()
    item = Approval(
        id=secrets.token_hex(4),
        plan_sha256=sha256,
        plan="",
        job_name=wanted.task.name,
        created=now,
        updated=now,
        expires=(now + timedelta(seconds=context.policy.policy.approval_seconds)).replace(microsecond=0),
        request=json.dumps({"task": wanted.path, "justification": wanted.justification}),
    )
    item = replace(item, plan=_text(context, wanted, item))
    await context.db(context.store.approvals.ask, context.owner, item)
    return item


async def outdated(context: ClusterContext, item: Approval) -> list[str]:
    """What a question does not show as it is now, a sentence each."""
    asked = task_of(item) or {}
    try:
        now = await plan(context, str(asked.get("task")), asked.get("justification"))
    except InputError as error:
        return [error.message]
    limit = context.clock.now() + timedelta(seconds=context.policy.policy.approval_seconds)
    if item.expires > limit:
        return ["its text is not about this question"]
    text = _text(context, now, item)
    return (
        [] if item.plan == text else plan_text.differences(item.plan, text) or ["its text is not about this question"]
    )


async def granted(context: ClusterContext, wanted: LaunchPlan) -> Approval | None:
    """A yes to this very plan that was not used yet."""
    for item in await context.db(context.store.approvals.open, context.owner, _sha256(context, wanted)):
        if item.plan == _text(context, wanted, item) and await approval.counts(context, item) is not None:
            return item
    return None


def _sha256(context: ClusterContext, wanted: LaunchPlan) -> str:
    facts = [_facts(context, wanted), wanted.approvals, hashlib.sha256(wanted.data).hexdigest()]
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _text(context: ClusterContext, wanted: LaunchPlan, item: Approval) -> str:
    why = ["launch: a machine is rented, and only a person can agree to its price.", *wanted.approvals]
    return (
        plan_text.head(item.id, _sha256(context, wanted), item.expires)
        + plan_text.facts(_facts(context, wanted))
        + plan_text.reasons(why, "slurm-agent-tools launch")
        + plan_text.script(wanted.data)
    )


def _facts(context: ClusterContext, wanted: LaunchPlan) -> list[tuple[str, str]]:
    task, policy = wanted.task, context.policy
    each = f"{task.nodes} machine{'s' if task.nodes > 1 else ''} at up to {task.hourly_cost:g} USD"
    limit = format_duration(task.time_limit)
    end = f"{task.idle_minutes} idle minutes after its work each machine is taken away, with its disk (autostop, down)"
    return [
        ("user", context.owner.user),
        ("project", context.project),
        ("task", wanted.path),
        ("sha256", hashlib.sha256(wanted.data).hexdigest()),
        ("starts", shlex.join(["sky", "launch", "-c", task.name])),
        ("where", task.where),
        ("GPUs of each machine", f"{task.gpus} {task.gpu_kind}" if task.gpus else "none"),
        ("price per hour", f"at most {task.price_per_hour:.2f} USD: {each}{', spot' if task.spot else ''}"),
        ("price in all", f"at most about {task.most:.2f} USD: {task.tasks} x {limit}, and until it is taken away"),
        ("time limit", limit),
        ("autostop", end),
        ("reason given", wanted.justification or "none"),
        *(("also runs", f"{path} (sha256 {sha})") for path, sha in sorted(wanted.reading.files.items())),
        ("effective request", ResourcesShown.of(wanted.decision.resources).in_words),
        ("policy", f"{policy.name} {policy.version} (sha256 {policy.sha256})"),
    ]


# --- starting it ------------------------------------------------------------------------------------------------------


def refused(context: ClusterContext, wanted: LaunchPlan) -> LaunchReply | None:
    """The answer where no person's yes would help: the policy denies it, or asks for a reason."""
    if wanted.decision.verdict in {"allow", "approve"}:
        return None
    reason = f"Of the Slurm script that asks for the same: {format_refusal(wanted.decision)}"
    return _reply(context, wanted, "blocked", f"Nothing was started: {reason}", blocker="policy", reason=reason)


async def dry_run(context: ClusterContext, wanted: LaunchPlan) -> LaunchReply:
    """What sky says of the task without starting it; `blocked` where sky, or what it needs, is missing."""
    sky = process.program("sky", Path(context.project))
    if sky is None:
        reason = f"The program sky (SkyPilot) is not on the PATH. Install it in an environment of its own: {_INSTALL}"
        return _unavailable(context, wanted, reason, [_INSTALL, "sky check"])
    done, output = await _sky(context, wanted, [sky, "launch", "--dryrun", "-y"], _DRY_RUN)
    if done is None or done:
        what = "did not answer" if done is None else f"ended with {done}"
        reason = f"The dry run of sky {what}. `sky check` says which clouds have credentials. sky said: {output}"
        return _unavailable(context, wanted, reason, ["sky check"])
    return _reply(context, wanted, "dry_run", f"{_price(wanted)} Nothing was started.", output=output)


async def ask(context: ClusterContext, wanted: LaunchPlan) -> LaunchReply:
    """The answer that leaves the question to a person, who answers it with `approve`."""
    since = context.clock.now() - timedelta(seconds=context.policy.policy.approval_seconds)
    if await context.db(context.store.approvals.declined, context.owner, _sha256(context, wanted), since):
        no = "A person declined this very task."
        return _reply(context, wanted, "blocked", no, blocker="approval", reason=no, human_action_required=True)
    item = await question(context, wanted)
    reason = f"{_price(wanted)} A person has to agree to exactly this task, once."
    commands = [handover.approve_command(context, item.id), shlex.join(["slurm-agent-tools", "launch", wanted.path])]
    return _reply(
        context, wanted, "blocked", f"Nothing was started: {reason}",
        blocker="approval", reason=reason, human_action_required=True, approval_id=item.id, manual_commands=commands,
    )  # fmt: skip


async def start(context: ClusterContext, wanted: LaunchPlan, given: Approval, caller: Caller) -> LaunchReply:
    """Use the yes up and start the task. `unconfirmed` where sky did not come back in an hour."""
    if not await context.db(context.store.approvals.use, given.id):
        raise InputError("id", given.id, "was used by somebody else meanwhile", hint="Call launch again: it asks anew.")
    await context.log_decision(caller, wanted.decision, "launch", "launched", approval=given.id, path=wanted.path)
    sky = process.program("sky", Path(context.project)) or "sky"
    done, output = await _sky(context, wanted, [sky, "launch", "-y", "--detach-run"], _LAUNCH)
    name = wanted.task.name
    commands = [f"sky queue {name}", f"sky logs {name}", f"sky down {name}"]
    if done is None:
        summary = f"sky did not come back: a machine may be there. Look with `sky status {name}`."
        return _reply(context, wanted, "unconfirmed", summary, output=output, manual_commands=commands)
    if done == _NEVER_BEGAN:
        raise AgentToolsError(f"Nothing was started: {output}", hint="Mend sky, then call launch again: it asks anew.")
    if done:
        hint = f"A machine may be there all the same: `sky status {name}`, then `sky down {name}`."
        raise AgentToolsError(f"sky launch ended with {done}: {output}", hint=hint)
    summary = f"Started {name}. {_price(wanted)}"
    return _reply(context, wanted, "launched", summary, output=output, manual_commands=commands)


async def _sky(context: ClusterContext, wanted: LaunchPlan, argv: list[str], seconds: float) -> tuple[int | None, str]:
    """Its exit code, None where it was ended, and the end of what it said; it reads a copy that nobody changes."""
    folder = posixpath.join(str(context.settings.state_dir), "launches")
    copy = posixpath.join(folder, f"{wanted.task.name}-{secrets.token_hex(3)}.yaml")
    if not await context.files.write_new(copy, wanted.data, mode=0o600):
        raise StorageError(f"{copy} exists already", hint="Call again: the name holds a random part.")
    env = {**process.environment(), "SKYPILOT_DISABLE_USAGE_COLLECTION": "1"}
    try:
        ended = await process.run(
            [*argv, "-c", wanted.task.name, copy], env=env, cwd=context.project, timeout=seconds, max_output=2**20
        )
    except OSError as error:
        return _NEVER_BEGAN, f"{argv[0]} cannot be started: {error.strerror}"
    finally:
        with anyio.CancelScope(shield=True):
            await context.files.remove(copy)
    said = (ended.stdout + ended.stderr).decode("utf-8", "replace").strip()
    return ended.exit_code, sanitize.shown(said[-_LAST:])


def _price(wanted: LaunchPlan) -> str:
    task = wanted.task
    ends = f"taken away after {task.idle_minutes} idle minutes"
    return f"{task.name} costs at most {task.price_per_hour:.2f} USD an hour, about {task.most:.2f} in all; {ends}."


def _unavailable(context: ClusterContext, wanted: LaunchPlan, reason: str, commands: list[str]) -> LaunchReply:
    again = shlex.join(["slurm-agent-tools", "launch", wanted.path])
    return _reply(
        context, wanted, "blocked", f"Nothing was started: {reason}", blocker="tool_unavailable", reason=reason,
        human_action_required=True, manual_commands=[*commands, again],
    )  # fmt: skip


def _reply(context: ClusterContext, wanted: LaunchPlan, status: str, summary: str, **more: object) -> LaunchReply:
    task = wanted.task
    return LaunchReply.model_validate(
        {
            "status": status,
            "summary": summary,
            "as_of": context.clock.now(),
            "name": task.name,
            "price_per_hour": round(task.price_per_hour, 2),
            "price_at_most": round(task.most, 2),
            "autostop_minutes": task.idle_minutes,
            "decision": decision_shown(wanted.decision),
            **more,
        }
    )
