"""get_campaign and advance_campaign: a campaign's file and what the ledger has of it, read, and carried on."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass, replace

from slurm_agent_tools.api.campaign_plan import campaign_plan
from slurm_agent_tools.api.campaign_ports import ServicePorts
from slurm_agent_tools.campaigns import campaign_view
from slurm_agent_tools.campaigns.batch import needed_texts
from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.file_reader import FOLDER, LARGEST, checked_name, read_campaign
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.errors import ConfigError, SlurmError
from slurm_agent_tools.models.campaign import RevisionBegun, Stamped, TrialId
from slurm_agent_tools.models.campaign_answer import CampaignReply
from slurm_agent_tools.models.campaign_file import CampaignFile
from slurm_agent_tools.models.job import HELD_UP
from slurm_agent_tools.models.toolset_arguments import GetCampaign
from slurm_agent_tools.services import jobs, project_paths
from slurm_agent_tools.services.context import Caller, ClusterContext


@dataclass(frozen=True, slots=True)
class OpenedCampaign:
    """A campaign as its file says and as it stands. `note`: what to tell beside."""

    name: str
    text: str
    file: CampaignFile
    state: CampaignState
    note: str = ""


async def opened(context: ClusterContext, name: str) -> OpenedCampaign:
    """Its file as it is now, and what the ledger has of it. Raises InputError and StorageError.

    A file that cannot be read any more: as it was when the campaign went on last, and a note.
    """
    path = f"{FOLDER}/{checked_name(name)}.yaml"
    events = await context.db(context.store.campaigns.events, context.owner, name)
    state = fold(events)
    try:
        _, data = await project_paths.read_file(context.here, "name", path, limit=LARGEST)
        return OpenedCampaign(name, data.decode(), read_campaign(data, path), state)
    except (ConfigError, UnicodeDecodeError) as error:
        if not state.revision:
            raise
        text = state.document()
        note = f" {path} cannot be read now, so this is revision {state.revision}: {error}"
        return OpenedCampaign(name, text, read_campaign(text.encode(), path), state, note)


async def get_campaign(context: ClusterContext, ask: GetCampaign, caller: Caller) -> CampaignReply:
    """How it stands, what it would do, its table or its report. Changes nothing but the report's files."""
    campaign = await opened(context, ask.name)
    full = ask.detail == "full"
    if ask.view == "plan":
        return await _plan(context, caller, campaign)
    running = await running_trials(context, campaign.state)
    answer = reply(context, campaign, running)
    if ask.view == "table":
        rows, more = campaign_view.table(campaign.file, campaign.state, full=full)
        return answer.model_copy(update={"table": rows, "rows_not_shown": more})
    if ask.view == "report" and campaign.state.revision:
        ports = ServicePorts(context, caller, campaign.name, campaign.file)
        path = await ports.write_report(campaign.file, campaign.state)
        told = f"The report is in {path}, with plots in {(path or '').removesuffix('.md')}.html. "
        return answer.model_copy(update={"report_path": path, "summary": told + answer.summary})
    return answer


async def _plan(context: ClusterContext, caller: Caller, campaign: OpenedCampaign) -> CampaignReply:
    """Each round's trials with hours, price, wait and the guard's verdict."""
    ports = ServicePorts(context, caller, campaign.name, campaign.file)
    code = {stage.name: await ports.code_hash(stage) for stage in campaign.file.stages}
    state = campaign.state
    if not state.revision:
        sha256 = hashlib.sha256(campaign.text.encode()).hexdigest()
        state = fold([Stamped(1, context.clock.now(), RevisionBegun(1, sha256, campaign.text, code))])
    texts = await ports.texts(needed_texts(campaign.file))
    plan = await campaign_plan(context, campaign.name, campaign.file, replace(state, code=code), texts)
    answer = reply(context, campaign, ())
    summary = f"Campaign {campaign.name}: {plan.summary}{campaign.note}"
    return answer.model_copy(update={"summary": summary, "table": plan.rows})


async def running_trials(context: ClusterContext, state: CampaignState) -> frozenset[TrialId]:
    """Trials that run by the queue; none where it does not answer."""
    sent = {one.job_id: one.trial.id for one in state.in_phase("sent") if one.job_id is not None}
    if not sent:
        return frozenset()
    ids = {jobs.parse(text): trial for text, trial in sent.items()}
    try:
        queue = await context.slurm.queue()
    except SlurmError:
        return frozenset()
    going = [job for job in queue.jobs(sorted({one.base for one in ids})) if job.active and job.state not in HELD_UP]
    return frozenset(trial for job_id, trial in ids.items() if any(job.job_id == job_id for job in going))


def reply(context: ClusterContext, campaign: OpenedCampaign, running: Collection[TrialId]) -> CampaignReply:
    """What every view shows."""
    file, state = campaign.file, campaign.state
    return CampaignReply(
        status=state.status,
        summary=campaign_view.summary(file, state, campaign.name, running) + campaign.note,
        as_of=context.clock.now(),
        round=state.round if state.revision else None,
        counts=campaign_view.counts(state, running),
        best=campaign_view.best(file, state, campaign.name),
        spent=campaign_view.spent(state),
        limits=campaign_view.limits(file),
        question=campaign_view.question(state),
        report_path=next((note.text for note in reversed(state.notes) if note.what == "report"), None),
    )
