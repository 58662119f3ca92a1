"""sync_files: what differs between the project here and on a cluster over SSH, and bringing it there and back."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import anyio
import anyio.to_thread

from slurm_agent_tools.backends import sync_plan, sync_sides, sync_transfer
from slurm_agent_tools.backends.sync_plan import KeptFile, SyncEntry, SyncPlan, SyncRules
from slurm_agent_tools.backends.sync_sides import SyncSide
from slurm_agent_tools.backends.sync_transfer import SyncOutcome
from slurm_agent_tools.errors import InputError, SlurmError, SlurmUnreachable, StorageError
from slurm_agent_tools.models.decision import decision_shown
from slurm_agent_tools.models.sync_answer import KeptShown, SyncReply
from slurm_agent_tools.models.toolset_arguments import SyncFiles
from slurm_agent_tools.policy.rules.files import protected_by
from slurm_agent_tools.services.context import Caller, ClusterContext, Progress
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all
from slurm_agent_tools.transport.git_state import tracked_files
from slurm_agent_tools.transport.local import LocalRunner
from slurm_agent_tools.units import how_many, human_memory

_NAMED = 3  # files in a sentence


@dataclass(frozen=True, slots=True)
class LocalLook:
    """What the project here says and has, looked at before anything is known of the cluster. `at`: when, in seconds."""

    at: float
    rules: SyncRules
    tracked: tuple[str, ...] | None
    paths: tuple[str, ...]
    names: tuple[str, ...] = ()  # of a push: what belongs there
    states: Mapping[str, SyncEntry] | None = None  # what is here under these names, where that was looked at too


@dataclass(frozen=True, slots=True)
class _Sync:
    """One call: the two sides, and what the project says."""

    context: ClusterContext
    ask: SyncFiles
    caller: Caller
    progress: Progress | None
    here: SyncSide
    there: SyncSide
    local: LocalLook


_FRESH = 3.0  # seconds that a look may be old; a login may wait minutes for a code, and whoever types it may edit files


async def look_ahead(project: str, ask: SyncFiles) -> LocalLook:
    """Look at all of the project that a call needs, before its cluster is reached. Raises as `sync_files`."""
    found = await _look_here(project, ask)
    states = await anyio.to_thread.run_sync(sync_sides.local_states, project, found.names)
    return replace(found, states=states)


async def _look_here(project: str, ask: SyncFiles) -> LocalLook:
    begun, paths = anyio.current_time(), tuple(_pattern("paths", one) for one in ask.paths or ())
    rules = await anyio.to_thread.run_sync(sync_sides.rules_of, project)
    found = LocalLook(begun, rules, await tracked_files(project), paths)
    return found if ask.direction == "pull" else replace(found, names=await _names(project, ask, found))


async def sync_files(
    context: ClusterContext,
    ask: SyncFiles,
    caller: Caller,
    progress: Progress | None = None,
    early: LocalLook | None = None,
) -> SyncReply:
    """Push, pull or compare. Raises InputError, ConfigError and StorageError; refusals are replies.

    `early`: a look at the project that was taken while the cluster was reached; it counts as long as it is fresh.
    """
    if context.elsewhere is None:
        hint = "Name a cluster with a host of its own in `cluster`; get_status lists what this project runs on."
        raise InputError("cluster", context.cluster, "has the project's own files: nothing is brought over", hint=hint)
    if ask.delete and ask.direction != "push":
        raise InputError("delete", ask.delete, f"is for push, not for {ask.direction}", hint="Remove it.")
    here = SyncSide(context.files, context.project, LocalRunner(context.settings))
    there = SyncSide(context.transport.files, context.environment.root, context.transport.runner)
    fresh = early is not None and anyio.current_time() - early.at < _FRESH
    local = early if early is not None and fresh else await _look_here(context.project, ask)
    call = _Sync(context, ask, caller, progress, here, there, local)
    try:
        return await (_pulled(call) if ask.direction == "pull" else _pushed(call))
    except SlurmUnreachable as error:
        reason = f"{error.message} {error.hint}".strip()
        answer = _reply(call, "blocked", f"Nothing was brought over: {reason}")
        return answer.model_copy(update={"blocker": "cluster_unreachable", "reason": reason})


def _pattern(field_name: str, text: str) -> str:
    try:
        return sync_plan.pattern(text)
    except ValueError as error:
        raise InputError(field_name, text, str(error)) from error


# --- There ------------------------------------------------------------------------------------------------------------


async def _pushed(call: _Sync) -> SyncReply:
    """What is the same there already stays; what is refused stops all of it before anything is sent."""
    names, deletions = call.local.names, [_deletion(one) for one in call.ask.delete or ()]
    here, there = await _both(call, deletions)
    entries = [here[name] for name in names if name in here]
    _check_deletions(deletions, here, there)
    plan = sync_plan.plan_push(entries, there)
    gone = [name for name in names if name not in here and name in there and name not in deletions]
    differs = [entry.path for entry in plan.moves] + gone
    if call.ask.direction == "status":
        summary = f"{_files(len(differs))} {_differ(len(differs))} here and there{_some(differs)}; "
        summary += f"{plan.unchanged} {'is' if plan.unchanged == 1 else 'are'} the same."
        return _with(_reply(call, "done", summary + _kept_words(plan.refused)), plan, differs)
    refused = [*plan.refused, *await sync_transfer.secrets(call.here, plan.moves)]
    if (answer := _refusal(call, plan, refused)) is not None:
        return await _logged(call, answer)
    if call.ask.dry_run:
        summary = f"{_files(len(plan.moves))} ({human_memory(plan.size)}) would be sent{_some(differs)}; nothing was."
        answer = _with(_reply(call, "done", summary), plan, differs)
        gone = [one for one in deletions if one in there]
        return answer.model_copy(update={"sent": len(plan.moves), "bytes": plan.size, "deleted": gone})
    outcome = await _copied(call, plan, out=True)
    deleted = (
        [] if outcome.stopped else [one for one in deletions if await call.there.files.remove(call.there.path(one))]
    )
    answer = _told(call, plan, outcome, gone)
    cleaned = await _cleaned(call, sync_plan.leftovers(names, there)) if answer.status == "done" else ""
    summary = answer.summary + cleaned + _deleted_words(deleted, [one for one in deletions if one not in there])
    return await _logged(call, answer.model_copy(update={"deleted": deleted, "summary": summary}))


async def _cleaned(call: _Sync, left: Sequence[str]) -> str:
    """Take away what transfers that broke off left there, and say so. What cannot be taken away stays."""
    gone = 0
    with suppress(StorageError, SlurmError):
        for one in left:
            gone += await call.there.files.remove(call.there.path(one))
        folders = sorted({posixpath.dirname(one) for one in left if posixpath.dirname(one).endswith(sync_plan.PART)})
        if folders:
            await sync_sides.remove_empty(call.there.runner, call.there.root, folders)
    return f" Removed there what an earlier transfer left half done: {_files(gone)}." if gone else ""


async def _both(call: _Sync, more: Sequence[str]) -> tuple[Mapping[str, SyncEntry], dict[str, SyncEntry]]:
    """What is here, and what is there, looked at side by side. Raises as each of both."""
    names, states = call.local.names, call.local.states

    async def local() -> Mapping[str, SyncEntry]:
        if states is not None:
            return states
        return await anyio.to_thread.run_sync(sync_sides.local_states, call.here.root, names)

    there = ConcurrentQuestion(partial(sync_sides.remote_states, call.there.runner, call.there.root, [*names, *more]))
    here = ConcurrentQuestion(local)
    await ask_all(there, here)
    return here.value(), there.value()


async def _names(project: str, ask: SyncFiles, local: LocalLook) -> tuple[str, ...]:
    """Everything of the project that belongs there: what git tracks, and what the rules add."""
    if local.tracked is None and not local.rules.sent:
        hint = f"Is git installed? Run `git init` and `git add`, or name what is sent in {sync_plan.RULES_FILE}."
        raise InputError("direction", ask.direction, "needs git, and a repository that can be read", hint=hint)
    added = await anyio.to_thread.run_sync(sync_sides.local_names, project, local.rules.sent)
    names = sorted({name for name in (*(local.tracked or ()), *added) if not local.rules.leave_alone(name)})
    for one in local.paths:
        if not any(sync_plan.matches([one], name) for name in names):
            hint = f"`git add` it, or name it in {sync_plan.RULES_FILE}."
            raise InputError("paths", one, "names nothing that git tracks or the rules send", hint=hint)
    return tuple(name for name in names if not local.paths or sync_plan.matches(local.paths, name))


def _deletion(text: str) -> str:
    name = _pattern("delete", text)
    if not sync_plan.is_name(name) or name == "." or ".git" in name.split("/"):
        raise InputError("delete", text, "is no name of one file", hint="Name each file by itself, without patterns.")
    return name


def _check_deletions(names: Sequence[str], here: Mapping[str, SyncEntry], there: dict[str, SyncEntry]) -> None:
    for name in names:
        found = there.get(name)
        if name in here:
            raise InputError("delete", name, "is still here", hint="Delete it here first, or leave it out.")
        if found is not None and found.kind in {"dir", "other"}:
            raise InputError("delete", name, "is no file there", hint="Name each file by itself.")
        if any(above in there and there[above].kind != "dir" for above in sync_plan.folders_above(name)):
            raise InputError("delete", name, "lies behind a link there", hint="Name a file in the folder itself.")


# --- And back ---------------------------------------------------------------------------------------------------------


async def _pulled(call: _Sync) -> SyncReply:
    """What the patterns name; nothing here is overwritten that git tracks, unless it is named exactly."""
    patterns = call.local.paths or call.local.rules.brought or sync_plan.BRINGS
    found = await sync_sides.remote_names(call.there.runner, call.there.root, patterns)
    names = [name for name in found if not call.local.rules.leave_alone(name)]
    here = await anyio.to_thread.run_sync(partial(sync_sides.local_states, call.here.root, names))
    sizes = {name: entry.size for name, entry in here.items() if entry.kind == "file"}
    there = await sync_sides.remote_states(call.there.runner, call.there.root, names, sizes=sizes)
    plan = sync_plan.plan_pull(
        names, there, here,
        tracked=frozenset(call.local.tracked or ()), named=frozenset(filter(sync_plan.is_name, call.local.paths)),
        protected=_protected(call.context, names),
    )  # fmt: skip
    if (answer := _refusal(call, plan, ())) is not None:
        return await _logged(call, answer)
    differs = [entry.path for entry in plan.moves]
    if call.ask.dry_run:
        summary = (
            f"{_files(len(differs))} ({human_memory(plan.size)}) would be brought here{_some(differs)}; nothing was."
        )
        answer = _with(_reply(call, "done", summary + _kept_words(plan.refused)), plan, differs)
        return answer.model_copy(update={"received": len(differs), "bytes": plan.size})
    outcome = await _copied(call, plan, out=False)
    return await _logged(call, _told(call, plan, outcome, [kept.path for kept in plan.refused]))


def _protected(context: ClusterContext, names: Sequence[str]) -> dict[str, str]:
    found = {}
    for name in names:
        full = posixpath.join(context.project, name)
        if (pattern := protected_by(full, context.project, context.policy.policy)) is not None:
            found[name] = pattern
    return found


# --- Both -------------------------------------------------------------------------------------------------------------


def _refusal(call: _Sync, plan: SyncPlan, refused: Sequence[KeptFile]) -> SyncReply | None:
    """The answer where the policy lets nothing go over."""
    most = call.context.policy.policy.sizes.sync_bytes
    if refused:
        reason = f"{_files(len(refused))} must not go there: " + "; ".join(
            f"{kept.path}: {kept.why}" for kept in refused[:_NAMED]
        )
        reason += f". Leave it out with a line !NAME in {sync_plan.RULES_FILE}, or take it out of the project."
    elif plan.size > most:
        reason = f"{human_memory(plan.size)} are more than the {human_memory(most)} that the policy allows at once"
        reason += " (sizes.sync_bytes). Name fewer files in paths."
    else:
        return None
    answer = _reply(call, "blocked", f"Nothing was brought over: {reason}")
    kept = [KeptShown(path=one.path, why=one.why) for one in refused]
    return answer.model_copy(
        update={"blocker": "policy", "reason": reason, "human_action_required": False, "kept": kept}
    )


async def _copied(call: _Sync, plan: SyncPlan, *, out: bool) -> SyncOutcome:
    source, target = (call.here, call.there) if out else (call.there, call.here)

    async def told(size: int, name: str) -> None:
        if call.progress is not None:
            await call.progress(min(size, plan.size), plan.size, name)

    return await sync_transfer.copy(source, target, plan.moves, told, out=out)


def _told(call: _Sync, plan: SyncPlan, outcome: SyncOutcome, more: Sequence[str]) -> SyncReply:
    """The answer after a transfer. `more`: what differs all the same, and was not to be touched."""
    done = frozenset(outcome.done)
    left = [entry.path for entry in plan.moves if entry.path not in done]
    out = call.ask.direction == "push"
    summary = f"{_files(len(done))} ({human_memory(outcome.size)}) {'sent' if out else 'brought here'}"
    summary += f", {plan.unchanged} unchanged."
    if left:
        why = outcome.stopped or "; ".join(f"{kept.path}: {kept.why}" for kept in outcome.failed[:_NAMED])
        summary += f" {_files(len(left))} not: {why.rstrip('.')}. Call again: what is whole is not moved again."
    kept = [*plan.refused, *outcome.failed]
    answer = _reply(call, "partial" if left else "done", summary + _kept_words(plan.refused))
    return answer.model_copy(
        update={
            "sent" if out else "received": len(done), "bytes": outcome.size, "unchanged": plan.unchanged,
            "differs": [*left, *more], "kept": [KeptShown(path=one.path, why=one.why) for one in kept],
            "reason": outcome.stopped,
        }
    )  # fmt: skip


def _reply(call: _Sync, status: str, summary: str) -> SyncReply:
    return SyncReply(
        status=status, summary=summary, as_of=call.context.clock.now(), direction=call.ask.direction,
        dry_run=call.ask.dry_run,
    )  # fmt: skip


def _with(answer: SyncReply, plan: SyncPlan, differs: Sequence[str]) -> SyncReply:
    kept = [KeptShown(path=one.path, why=one.why) for one in plan.refused]
    return answer.model_copy(update={"unchanged": plan.unchanged, "differs": list(differs), "kept": kept})


async def _logged(call: _Sync, answer: SyncReply) -> SyncReply:
    """The answer, in the decision log too."""
    decision = call.context.own_decision("deny" if answer.status == "blocked" else "allow")
    await call.context.log_decision(
        call.caller, decision, "sync_files", "synced" if answer.status != "blocked" else "refused",
        direction=answer.direction, dry_run=answer.dry_run, sent=answer.sent, received=answer.received,
        bytes=answer.bytes, deleted=answer.deleted, summary=answer.summary,
    )  # fmt: skip
    return answer.model_copy(update={"decision": decision_shown(decision)}) if answer.status == "blocked" else answer


_files = partial(how_many, noun="file")


def _differ(count: int) -> str:
    return "differs" if count == 1 else "differ"


def _some(names: Sequence[str]) -> str:
    return "" if not names else f" ({', '.join(names[:_NAMED])}{', …' if len(names) > _NAMED else ''})"


def _deleted_words(deleted: Sequence[str], absent: Sequence[str]) -> str:
    told = f" Deleted there: {', '.join(deleted[:_NAMED])}{', …' if len(deleted) > _NAMED else ''}." if deleted else ""
    return told + (f" Was not there: {', '.join(absent[:_NAMED])}." if absent else "")


def _kept_words(kept: Sequence[KeptFile]) -> str:
    if not kept:
        return ""
    told = "; ".join(f"{one.path}: {one.why}" for one in kept[:_NAMED])
    return f" {_files(len(kept))} left as {'it is' if len(kept) == 1 else 'they are'}: {told}."
