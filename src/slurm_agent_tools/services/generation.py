"""generate_script: a script goes through the guard before it is written."""

from __future__ import annotations

import posixpath
import secrets

from slurm_agent_tools.errors import SlurmError, StorageError
from slurm_agent_tools.models.arguments import GenerateScript
from slurm_agent_tools.models.decision import Decision, DecisionShown, RuleDecision, decision_shown
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.models.submission_answer import GenerateReply
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate, format_refusal
from slurm_agent_tools.services import decisions, project_paths, submission_advice
from slurm_agent_tools.services.context import Caller, ClusterContext, new_id
from slurm_agent_tools.services.handover import GENERATED
from slurm_agent_tools.services.project_paths import read
from slurm_agent_tools.services.script_writing import Draft, check, compose


async def generate_script(context: ClusterContext, ask: GenerateScript, caller: Caller) -> GenerateReply:
    """Compose, judge, then write a new file; submits nothing. Raises InputError and StorageError."""
    check(ask)
    draft = compose(
        ask,
        partitions=await _partitions(context),
        limits=context.policy.policy.limits,
        mail_user=context.settings.mail_user,
        now=context.clock.now(),
        suffix=secrets.token_hex(3),
        records=await submission_advice.records(context, ask.name),
    )
    path = posixpath.join(GENERATED, draft.file_name)
    data = draft.script.encode()
    decision = await _judge_script(context, data, path, writes=True)
    await decisions.log(context, caller, decision, "generate_script", "decided", path=path, size=len(data))
    if decision.verdict != "allow":
        return _blocked(context, draft, decision)
    real = await project_paths.resolve(context.here, "name", path)
    if not await context.files.write_new(real, data, mode=0o700):
        raise StorageError(f"{path} exists already", hint="Call again: the name holds a random part.")
    return GenerateReply(
        status="written",
        summary=f"Wrote {path}. Submit it with submit_job.",
        as_of=context.clock.now(),
        path=path,
        script=draft.script,
        reasons=draft.reasons,
        decision=decision_shown(decision),
    )


def _blocked(context: ClusterContext, draft: Draft, decision: Decision) -> GenerateReply:
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


def _refused(decision: DecisionShown) -> list[RuleDecision]:
    return [rule for rule in decision.rules if rule.outcome in {"deny", "justify", "approve"}]


# --- the guard without a submission ------------------------------------------------------------------------------


async def _judge_script(context: ClusterContext, data: bytes, path: str, *, writes: bool = False) -> Decision:
    """The rules that need no more of the cluster than its partitions, over a script's text.

    With `writes`, the file to be written too.
    """
    reading, _ = await read(context, data, path)
    real = await project_paths.resolve(context.here, "path", path) if writes else None
    evaluation = EvaluationContext(
        context.policy,
        context.project,
        tool="generate_script" if writes else "validate_config",
        decision_id=new_id(),
        partitions=await _partitions(context),
        path=real,
        path_exists=real is not None and await context.files.stat(real) is not None,
        size=len(data) if writes else None,
    )
    return evaluate(reading, evaluation)


async def _partitions(context: ClusterContext) -> dict[str, Partition] | None:
    """What the cluster offers, where it can be asked: drafting and checking go on without it."""
    try:
        return dict(await context.slurm.partitions())
    except SlurmError:
        return None
