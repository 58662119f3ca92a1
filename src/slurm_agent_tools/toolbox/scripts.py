"""generate_script and validate_config: what goes through the guard before it is written, and what is only read."""

from __future__ import annotations

import posixpath
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace

from slurm_agent_tools import configs
from slurm_agent_tools.catalogue import GenerateScript, ValidateConfig
from slurm_agent_tools.errors import SlurmError, StorageError
from slurm_agent_tools.generate import Draft, check, compose
from slurm_agent_tools.model import Partition
from slurm_agent_tools.policy.engine import decide, format_refusal
from slurm_agent_tools.policy.pins import pins
from slurm_agent_tools.policy.plan import Plan
from slurm_agent_tools.replies import Complaint, DecisionShown, GenerateReply, RuleResult, ValidateReply
from slurm_agent_tools.toolbox import advice, decisions, paths, shape
from slurm_agent_tools.toolbox.case import resolved
from slurm_agent_tools.toolbox.desk import Caller, Desk, Shelf, new_id
from slurm_agent_tools.toolbox.fallback import GENERATED
from slurm_agent_tools.toolbox.reading import read

_CONFIG_LIMIT = 5 * 2**20


async def generate_script(desk: Desk, ask: GenerateScript, caller: Caller) -> GenerateReply:
    """Compose, judge, then write a new file; submits nothing. Raises InputError and StorageError."""
    check(ask)
    draft = compose(
        ask,
        partitions=await _partitions(desk),
        limits=desk.policy.policy.limits,
        mail_user=desk.settings.mail_user,
        now=desk.clock.now(),
        suffix=secrets.token_hex(3),
        records=await advice.records(desk, ask.name),
    )
    path = posixpath.join(GENERATED, draft.file_name)
    data = draft.script.encode()
    decision = await _judge_script(desk, data, path, writes=True)
    await decisions.log(desk, caller, decision, "generate_script", "decided", path=path, size=len(data))
    if decision.verdict != "allow":
        return _blocked(desk, draft, decision)
    real = await paths.resolve(desk.here, "name", path)
    if not await desk.files.write_new(real, data, mode=0o700):
        raise StorageError(f"{path} exists already", hint="Call again: the name holds a random part.")
    return GenerateReply(
        status="written",
        summary=f"Wrote {path}. Submit it with submit_job.",
        as_of=desk.clock.now(),
        path=path,
        script=draft.script,
        reasons=draft.reasons,
        decision=decision,
    )


def _blocked(desk: Desk, draft: Draft, decision: DecisionShown) -> GenerateReply:
    reason = format_refusal(decision)
    human = decision.verdict == "approve"
    return GenerateReply(
        status="blocked",
        summary=f"No script was written: {reason}",
        as_of=desk.clock.now(),
        script=draft.script,
        reasons=draft.reasons,
        blocker="approval" if human else "policy",
        reason=reason,
        human_action_required=human,
        decision=decision,
    )


async def validate_config(desk: Desk, ask: ValidateConfig) -> ValidateReply:
    """Check one file; changes nothing. Raises InputError."""
    shelf = await paths.either(desk, "config_path", ask.config_path)
    real, data = await paths.read_file(shelf, "config_path", ask.config_path, limit=_CONFIG_LIMIT)
    shown = paths.relative(shelf, real)
    if data.startswith(b"#!") or real.endswith((".sh", ".sbatch", ".slurm")):
        _, data = await paths.read_script(shelf, "config_path", ask.config_path, limit=_CONFIG_LIMIT)
        decision = await _judge_script(desk, data, shown)
        return _validated(desk, ask, _against(decision), [], {"kind": "batch script"}, decision)
    schema = await _schema(shelf)
    if shown == configs.SCHEMA:
        await shape.against(b"{}", ".json", data)
        return _validated(desk, ask, [], [], {"kind": "JSON Schema"}, None)
    config = configs.parse(data, posixpath.splitext(real)[1], shown)
    present = {path: await _present(desk.there, path) for path in configs.paths(config)}
    errors, warnings, summary = configs.check(config, present, shaped=schema is not None)
    if schema is not None:
        errors = [*await shape.against(data, posixpath.splitext(real)[1], schema), *errors]
        summary["schema"] = configs.SCHEMA
    section = configs.slurm_section(config)
    if section is None:
        return _validated(desk, ask, errors, warnings, summary, None)
    judged = await _judge_script(desk, configs.slurm_script(section).encode(), shown)
    judged = judged.model_copy(update={"rules": configs.retold(config, judged.rules)})
    errors += [configs.complaint(config, rule) for rule in _refused(judged)]
    return _validated(desk, ask, errors, warnings, summary, judged)


async def _schema(shelf: Shelf) -> bytes | None:
    """The project's own schema for its configurations, where it has one. One that cannot be read is an error."""
    real = await paths.resolve(shelf, "schema", configs.SCHEMA)
    if await shelf.files.stat(real) is None:
        return None
    return (await paths.read_file(shelf, "schema", configs.SCHEMA, limit=_CONFIG_LIMIT))[1]


async def _present(shelf: Shelf, path: str) -> bool:
    full = path if posixpath.isabs(path) else posixpath.join(shelf.root, path)
    return await shelf.files.stat(await shelf.files.real_path(full)) is not None


def _refused(decision: DecisionShown) -> list[RuleResult]:
    return [rule for rule in decision.rules if rule.outcome in {"deny", "justify", "approve"}]


def _against(decision: DecisionShown) -> list[Complaint]:
    """What the guard has against a batch script."""
    return [
        Complaint(
            path=rule.id,
            line=rule.evidence[0].line if rule.evidence else None,
            message=rule.message,
            remedy=(rule.remedy or "").replace("Call again with ", "Call submit_job with "),
        )
        for rule in _refused(decision)
    ]


def _validated(
    desk: Desk,
    ask: ValidateConfig,
    errors: list[Complaint],
    warnings: list[Complaint],
    summary: Mapping[str, object],
    decision: DecisionShown | None,
) -> ValidateReply:
    invalid = bool(errors) or (ask.strict and bool(warnings))
    verdict = "not valid" if invalid else "valid"
    return ValidateReply(
        status="invalid" if invalid else "valid",
        summary=f"{ask.config_path} is {verdict}: {_count(errors, 'error')}, {_count(warnings, 'warning')}.",
        as_of=desk.clock.now(),
        errors=errors,
        warnings=warnings,
        config_summary=dict(summary),
        decision=decision,
    )


def _count(found: Sequence[Complaint], word: str) -> str:
    return f"{len(found)} {word}" if len(found) == 1 else f"{len(found)} {word}s"


# --- the guard without a submission ------------------------------------------------------------------------------


async def _judge_script(desk: Desk, data: bytes, path: str, *, writes: bool = False) -> DecisionShown:
    """The rules that need no more of the cluster than its partitions, over a script's text.

    With `writes`, the file to be written too.
    """
    reading, _ = await read(desk, data, path)
    partitions = await _partitions(desk)
    pinned = pins(reading.request, desk.policy.policy, partitions)
    request, resources = resolved(reading.request, pinned, partitions)
    real = await paths.resolve(desk.here, "path", path) if writes else None
    plan = Plan(
        tool="generate_script" if writes else "validate_config",
        project=desk.project,
        reading=replace(reading, request=request),
        resources=resources,
        partitions=partitions,
        path=real,
        path_exists=real is not None and await desk.files.stat(real) is not None,
        size=len(data) if writes else None,
    )
    return decide(plan, desk.policy, decision_id=new_id(), pinned=pinned)


async def _partitions(desk: Desk) -> dict[str, Partition] | None:
    """What the cluster offers, where it can be asked: drafting and checking go on without it."""
    try:
        return dict(await desk.slurm.partitions())
    except SlurmError:
        return None
