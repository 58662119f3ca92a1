"""What happened to a campaign, folded into what is known of it. Pure: the same events give the same state."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable
from dataclasses import fields, replace
from datetime import datetime

from slurm_agent_tools.campaigns.state import (
    AGAIN,
    GO_ON,
    LOST,
    BatchState,
    CampaignState,
    Missed,
    TrialPhase,
    TrialState,
)
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.campaign import (
    BatchIntended,
    BatchRefused,
    BatchSent,
    CampaignFinished,
    CampaignStatus,
    CampaignStopped,
    Noted,
    PersonDecided,
    QuestionAsked,
    RevisionBegun,
    RoundDesigned,
    RoundJudged,
    StageStopped,
    Stamped,
    Trial,
    TrialEnd,
    TrialEnded,
    TrialId,
    TrialsLeftOut,
)


def fold(events: Iterable[Stamped], before: CampaignState | None = None) -> CampaignState:
    """The state after these events; `before`: after those in front of them. Raises StorageError for one that misfits.

    Takes time in proportion to the events, and once to the trials that there are.
    """
    folding = _Folding(before or CampaignState())
    for stamped in events:
        folding.take(stamped)
    return folding.state()


class _Folding:
    """The state while events are added: its mappings are copied once, and not for each event."""

    def __init__(self, before: CampaignState) -> None:
        self.now = before
        self.trials, self.judged = dict(before.trials), dict(before.judged)
        self.hypotheses, self.stops = dict(before.hypotheses), dict(before.stops)
        self.revisions, self.batches = dict(before.revisions), dict(before.batches)
        self.questions, self.decisions = dict(before.questions), dict(before.decisions)
        self.asked_in = dict(before.asked_in)
        self.phases: dict[TrialPhase, dict[TrialId, None]] = {phase: dict(ids) for phase, ids in before.phases.items()}
        self.rounds, self.arms = dict(before.rounds), dict(before.arms)
        self.replaced, self.passed_identities = dict(before.replaced), dict(before.passed_identities)
        self.failed_requests, self.notes = dict(before.failed_requests), list(before.notes)
        self.undecided, self.forgiven = dict(before.undecided), dict(before.forgiven)
        self.unsaved, self.unlearned = dict(before.unsaved), dict(before.unlearned)
        self.ends: dict[str, list[datetime]] = {}
        """When the tasks of a batch ended, in order: of those of which one ends now."""
        self.missed = dict(before.missed)
        self.spent, self.events, self.last_at = before.spent, before.events, before.last_at

    def state(self) -> CampaignState:
        known = {one.name: getattr(self, one.name) for one in fields(CampaignState) if hasattr(self, one.name)}
        return replace(self.now, **{**known, "notes": tuple(self.notes)})

    def take(self, stamped: Stamped) -> None:
        """Add one event. Raises StorageError where it does not fit what was before."""
        if stamped.number != self.events + 1:
            raise _misfit(stamped, f"event {self.events + 1} was expected")
        problem = self._taken(stamped)
        if problem is not None:
            raise _misfit(stamped, problem)
        self.events, self.last_at = stamped.number, stamped.at

    def _taken(self, stamped: Stamped) -> str | None:  # noqa: C901, PLR0911, PLR0912 - one line for each kind
        match stamped.event:
            case RevisionBegun() as event:
                return self._revision(event)
            case RoundDesigned() as event:
                return self._designed(event)
            case BatchIntended() as event:
                return self._intended(event, stamped.at)
            case BatchSent() as event:
                return self._sent(event)
            case BatchRefused() as event:
                return self._refused(event)
            case TrialEnded() as event:
                return self._ended(event)
            case TrialsLeftOut() as event:
                return self._left_out(event)
            case StageStopped() as event:
                return self._stage_stopped(event)
            case RoundJudged() as event:
                return self._judged(event)
            case QuestionAsked() as event:
                return self._question(event)
            case PersonDecided() as event:
                return self._decided(event)
            case CampaignStopped() | CampaignFinished() as event:
                return self._over(event)
            case Noted() as event:
                return self._noted(event, stamped.at)

    # --- one event each: None, or why it does not fit ------------------------------------------------------------

    def _revision(self, event: RevisionBegun) -> str | None:
        if event.revision != self.now.revision + 1:
            return f"revision {self.now.revision + 1} was expected"
        if self.now.status == "stopped" or self.phases.get("sending"):
            return "the campaign is stopped, or something is being sent"
        self.revisions[event.revision] = event
        self._leave_planned(f"the file or what it runs changed: revision {event.revision}")
        if event.rounds_kept is not None:
            for number in [number for number in self.hypotheses if number >= event.rounds_kept]:
                del self.hypotheses[number]
                self.judged.pop(number, None)
        for found in list(self.phases.get("refused", ())):
            self._put(replace(self.trials[found], phase="left_out"))
        self._give_up([about for about in self.undecided if about in self.batches])
        question, status = self.now.question, self.now.status
        if question is not None and question.about not in self.undecided:
            question, status = None, "running"
        if status == "finished":
            status = "running"
        self.now = replace(
            self.now, revision=event.revision, file_sha256=event.sha256, code=dict(event.code), question=question,
            status=status, reason=None,
        )  # fmt: skip
        return None

    def _designed(self, event: RoundDesigned) -> str | None:
        if self.now.over or event.revision != self.now.revision:
            return f"the campaign is {self.now.status} in revision {self.now.revision}"
        if event.round in self.judged:
            return f"round {event.round} is judged"
        self.hypotheses[event.round] = event.hypothesis
        for trial in event.trials:
            problem = self._planned(event.round, trial)
            if problem is not None:
                return problem
        status: CampaignStatus = "running" if self.now.question is None else "needs_decision"
        added = (trial.id for trial in event.trials)
        self.rounds[event.round] = (*self.rounds.get(event.round, ()), *added)
        self.now = replace(self.now, round=event.round, status=status)
        return None

    def _planned(self, round_number: int, trial: Trial) -> str | None:
        if trial.id.round != round_number or trial.id in self.trials:
            return f"{trial.id} is there already, or of another round"
        state = TrialState(trial, "planned", self.now.revision)
        if trial.reuses is not None:
            before = self.trials.get(trial.reuses)
            if before is None or not before.passed:
                return f"{trial.id} reuses {trial.reuses}, which has not passed"
            state = replace(state, phase="ended", end=before.end, job_id=before.job_id)
        if trial.replaces is not None:
            mended = self.trials.get(trial.replaces)
            if mended is None or not mended.failed or trial.replaces in self.replaced:
                return f"{trial.id} replaces {trial.replaces}, which did not fail, or is replaced already"
            self.replaced[trial.replaces] = trial.id
            if state.passed:
                self.unlearned[trial.id] = None
        self.arms[trial.stage, trial.arm] = (*self.arms.get((trial.stage, trial.arm), ()), trial.id)
        self._put(state)
        return None

    def _intended(self, event: BatchIntended, at: datetime) -> str | None:
        if self.now.over:
            return f"the campaign is {self.now.status}"
        if event.key in self.batches or not event.trials:
            return f"the batch {event.key} is there already, or empty"
        for trial in event.trials:
            state = self.trials.get(trial)
            if state is None or state.phase != "planned":
                return f"{trial} is not planned"
            self.spent = self.spent.sent(state.trial.request)
            self._put(replace(state, phase="sending", key=event.key))
        self.batches[event.key] = BatchState(event, self.trials[event.trials[0]].revision, at)
        return None

    def _sent(self, event: BatchSent) -> str | None:
        batch = self.batches.get(event.key)
        if batch is None or batch.job_id is not None:
            return f"the batch {event.key} is not being sent"
        self.batches[event.key] = replace(batch, job_id=event.job_id, refused=None)
        tasks = batch.intended.task_ids
        for index, trial in enumerate(batch.intended.trials):
            job = str(event.job_id) if tasks is None else f"{event.job_id}_{tasks[index]}"
            self._put(replace(self.trials[trial], phase="sent", job_id=job, why=None))
        return None

    def _refused(self, event: BatchRefused) -> str | None:
        batch = self.batches.get(event.key)
        if batch is None or batch.job_id is not None or batch.refused is not None:
            return f"the batch {event.key} is not being sent"
        self.batches[event.key] = replace(batch, refused=event)
        self.undecided[event.key] = None
        for trial in batch.intended.trials:
            self._put(replace(self.trials[trial], phase="refused", why=event.reason))
            if not event.person:  # what a person may let through after all stays counted until they decide
                self.spent = self.spent.withdrawn(self.trials[trial].trial.request)
        return None

    def _ended(self, event: TrialEnded) -> str | None:
        state = self.trials.get(event.trial)
        if state is None or state.phase != "sent":
            return f"{event.trial} was not sent, or has ended"
        self._put(replace(state, phase="ended", end=self._without_throttle(state, event.end)))
        self._told(event.trial)
        self.spent = self.spent.ended(state.trial.request, event.end)
        self.unsaved[event.trial] = None
        if self.now.over:
            self.now = replace(self.now, report_due=True)
        if event.end.passed:
            self.passed_identities.setdefault(state.trial.identity, event.trial)
            if state.trial.replaces is not None:
                self.unlearned[event.trial] = None
        else:
            self.failed_requests[state.trial.identity, state.trial.request] = event.trial
        return None

    def _without_throttle(self, state: TrialState, end: TrialEnd) -> TrialEnd:
        """The end with the wait that the queue made, and not the campaign; Slurm counts from the array's submission.

        A task that its array's throttle held back waits from the moment when enough others had ended.
        """
        batch = self.batches.get(state.key or "")
        width = None if batch is None else batch.intended.at_once
        if batch is None or width is None or end.ended is None:
            return end
        ends = self.ends.get(batch.intended.key)
        if ends is None:
            known = (self.trials[trial].end for trial in batch.intended.trials if trial != state.trial.id)
            ends = sorted(one.ended for one in known if one is not None and one.ended is not None)
            self.ends[batch.intended.key] = ends
        at = int((state.job_id or "").rpartition("_")[2] or 1) - 1 - width  # tasks begin in their order
        freed = ends[at] if 0 <= at < len(ends) else None
        insort(ends, end.ended)
        if freed is None or end.started is None or end.queue_seconds is None or end.restarts:
            return end
        return replace(end, queue_seconds=max(0.0, min(end.queue_seconds, (end.started - freed).total_seconds())))

    def _left_out(self, event: TrialsLeftOut) -> str | None:
        for trial in event.trials:
            state = self.trials.get(trial)
            if state is None or state.phase not in {"planned", "sending", "refused"}:
                return f"{trial} was sent, or is not there"
            if state.phase == "sending":
                self.spent = self.spent.withdrawn(state.trial.request)
            self._put(replace(state, phase="left_out", why=event.reason))
        return None

    def _stage_stopped(self, event: StageStopped) -> str | None:
        if event.stage in self.stops:
            return f"the stage {event.stage} is stopped already"
        self.stops[event.stage] = event
        self._give_up([key for key in self.undecided if key in self.batches and self._stage_of(key) == event.stage])
        self.undecided[event.cause] = None
        self._leave_planned(event.reason, lambda trial: trial.stage == event.stage)
        return None

    def _judged(self, event: RoundJudged) -> str | None:
        if event.round in self.judged or event.round not in self.hypotheses:
            return f"round {event.round} is judged already, or was never designed"
        self.judged[event.round] = event
        self.now = replace(self.now, report_due=True, chance_spent=self.now.chance_spent + event.chance)
        self._leave_planned("its round is judged", lambda trial: trial.id.round == event.round)
        return None

    def _question(self, event: QuestionAsked) -> str | None:
        open_ = event.about in self.undecided if not event.trials else event.trials[0] in self.missed
        if self.now.over or event.question in self.questions or not open_:
            return f"the campaign is {self.now.status}, or {event.question} asks what nobody has to decide"
        self.questions[event.question] = event
        self.asked_in[event.question] = self.now.revision
        self.now = replace(self.now, question=event, status="needs_decision")
        return None

    def _decided(self, event: PersonDecided) -> str | None:
        asked = self.now.question
        if asked is None or asked.question != event.question or event.choice not in asked.choices:
            return f"{event.choice} answers no open question"
        self.decisions[event.question] = event
        if event.choice == AGAIN and asked.about in self.batches:
            self._try_again(asked.about)
        elif asked.about in self.batches:
            self._give_up([asked.about])
        self.undecided.pop(asked.about or "", None)
        if event.choice == GO_ON:
            self._go_on(asked.about)
        if event.choice == LOST:
            lost = {trial: self.missed[trial] for trial in asked.trials if trial in self.missed}
            self.missed |= {trial: replace(known, given_up=True) for trial, known in lost.items()}
        self.now = replace(self.now, question=None, status="running")
        return None

    def _go_on(self, cause: str | None) -> None:
        stages = {name for name, stop in self.stops.items() if stop.cause == cause}
        self.stops = {name: stop for name, stop in self.stops.items() if name not in stages}
        for found in self.failed_requests.values():
            if self.trials[found].trial.stage in stages:
                self.forgiven[found] = None

    def _try_again(self, key: str) -> None:
        batch = self.batches[key]
        if batch.refused is None:
            return
        self.batches[key] = replace(batch, refused=None)
        for trial in batch.intended.trials:
            if self.trials[trial].phase == "refused":
                if key not in self.undecided:  # its stage was stopped since, and it was not counted any more
                    self.spent = self.spent.sent(self.trials[trial].trial.request)
                self._put(replace(self.trials[trial], phase="sending", why=None))

    def _over(self, event: CampaignStopped | CampaignFinished) -> str | None:
        if self.now.over:
            return f"the campaign is {self.now.status}"
        self._leave_planned(event.reason)
        self._give_up([about for about in self.undecided if about in self.batches])
        status: CampaignStatus = "stopped" if isinstance(event, CampaignStopped) else "finished"
        self.now = replace(self.now, status=status, reason=event.reason, question=None, report_due=True)
        return None

    def _noted(self, event: Noted, at: datetime) -> str | None:
        if event.trial is not None and event.what == "seen":
            self._told(event.trial)
            return None
        if event.trial is not None and event.what in {"missed", "unrecorded"}:
            since = self.missed[event.trial].since if event.trial in self.missed else at
            self.missed[event.trial] = Missed(since, at if event.what == "unrecorded" else None)
            return None
        self.notes.append(event)
        if event.what == "result" and event.trial is not None:
            self.unsaved.pop(event.trial, None)
        if event.what == "lesson" and event.trial is not None:
            self.unlearned.pop(event.trial, None)
        if event.what == "report":
            self.now = replace(self.now, report_due=False)
        return None

    def _told(self, trial: TrialId) -> None:
        """Slurm tells of it again: once it does of all that a person was asked about, nothing is left to decide."""
        self.missed.pop(trial, None)
        asked = self.now.question
        if asked is not None and asked.trials and not any(one in self.missed for one in asked.trials):
            self.now = replace(self.now, question=None, status="running")

    def _give_up(self, keys: Iterable[str]) -> None:
        """Nobody decides on these refused batches any more: what a person could have let through is not spent."""
        for key in [key for key in keys if key in self.undecided]:
            self.undecided.pop(key)
            refused, trials = self.batches[key].refused, self.batches[key].intended.trials
            for trial in trials if refused is not None and refused.person else ():
                self.spent = self.spent.withdrawn(self.trials[trial].trial.request)

    # --- what several need ---------------------------------------------------------------------------------------

    def _stage_of(self, key: str) -> str:
        return self.trials[self.batches[key].intended.trials[0]].trial.stage

    def _put(self, state: TrialState) -> None:
        before = self.trials.get(state.trial.id)
        if before is not None:
            self.phases[before.phase].pop(state.trial.id)
        self.phases.setdefault(state.phase, {})[state.trial.id] = None
        self.trials[state.trial.id] = state

    def _leave_planned(self, why: str, which: Callable[[Trial], bool] | None = None) -> None:
        for found in list(self.phases.get("planned", ())):
            state = self.trials[found]
            if which is None or which(state.trial):
                self._put(replace(state, phase="left_out", why=why))


def _misfit(stamped: Stamped, why: str) -> StorageError:
    name = type(stamped.event).__name__
    return StorageError(
        f"event {stamped.number} of the campaign ({name}) does not fit what was before it: {why}",
        hint="The ledger was changed by something else: begin a campaign under another name.",
    )
