"""One pass over a campaign, as its steps share it: the file, the record of events, and what came of the pass so far."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from slurm_agent_tools.campaigns.batch import needed_texts
from slurm_agent_tools.campaigns.event_record import EventRecord
from slurm_agent_tools.campaigns.event_sentences import plain
from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.ports import CampaignPorts, TrialLook
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.errors import AgentToolsError, SlurmGarbled, SlurmRefused, SlurmUncertain, StorageError
from slurm_agent_tools.models.campaign import Trial, TrialId
from slurm_agent_tools.models.campaign_file import CampaignFile, CampaignStage
from slurm_agent_tools.transport.base import Clock

AWAY = 60.0
"""Seconds after which what did not work is tried again, such as a cluster that did not answer."""

PASSING: tuple[type[AgentToolsError], ...] = (StorageError, SlurmGarbled, SlurmUncertain, SlurmRefused)
"""Errors of one action that hold up that action alone: it is told, and tried again by a later pass."""


@dataclass(frozen=True, slots=True)
class SlotTurn:
    """What a pass may send where several campaigns share the slots: so many trials, each a job of its own.

    `partition_for`: where a trial goes that names no partition; None: where Slurm puts it.
    """

    trials: int = 0
    partition_for: Callable[[CampaignStage, Trial], str | None] = lambda _, __: None


class CampaignPass:
    """`wait`: seconds until a further pass is worth it, and why. `away`: the cluster did not answer in this pass.

    `paused`: nothing more is sent in it. `undone`: something is left that a later pass tries again, whatever the
    state says. `turn`: what the pass may send, None: all that fits; `ready`: what it has to send beyond that.
    """

    def __init__(
        self,
        path: str,
        name: str,
        ports: CampaignPorts,
        record: EventRecord,
        clock: Clock,
        turn: SlotTurn | None = None,
    ) -> None:
        self.path, self.name, self.ports, self.record, self.clock = path, name, ports, record, clock
        self.turn, self.turns_left = turn, 0 if turn is None else turn.trials
        self.ready: tuple[Trial, ...] = ()
        self.file: CampaignFile | None = None
        self.submitted: list[str] = []
        self.looks: dict[TrialId, TrialLook] = {}
        self.away = self.paused = self.undone = False
        self.wait: tuple[float, str] | None = None
        self._tried: set[Hashable] = set()

    @property
    def state(self) -> CampaignState:
        """After all events that are known."""
        return self.record.state

    def file_of(self, revision: int) -> CampaignFile:
        """The file as it was in a revision."""
        if self.file is not None and revision == self.state.revision:
            return self.file
        return read_campaign(self.state.document(revision).encode(), self.path)

    def stage_of(self, trial: TrialId) -> CampaignStage:
        """As the file had it when the trial was designed: a later one may not have it at all."""
        found = self.state.trials[trial]
        return self.file_of(found.revision).stage(found.trial.stage)

    async def texts(self, file: CampaignFile) -> Mapping[str, str]:
        """What `batches` is handed beside the file. Raises InputError for one that is not there."""
        needed = needed_texts(file)
        return await self.ports.texts(needed) if needed else {}

    def first(self, step: Hashable) -> bool:
        """Whether this was not tried yet in this pass."""
        new = step not in self._tried
        self._tried.add(step)
        return new

    def tell(self, sentence: str) -> None:
        """Say what happened that is no event."""
        self.record.happened.append(sentence)

    def wait_for(self, seconds: float, why: str) -> None:
        """A further pass is worth it then; what holds the pass up goes before what merely runs."""
        if self.wait is None or not (self.away or self.paused or self.undone):
            self.wait = (seconds, why)

    def left_undone(self, what: str, error: AgentToolsError) -> None:
        """Tell what could not be done, and that it is tried again."""
        self.tell(f"{what}: {plain(error.message)} It is tried again with the next call.")
        self.wait_for(AWAY, what)
        self.undone = True

    def unreachable(self, error: AgentToolsError) -> None:
        """The cluster does not answer: nothing more is asked of it in this pass."""
        self.tell(f"The cluster does not answer, and nothing was changed: {plain(error.message)}")
        self.wait_for(AWAY, "the cluster does not answer")
        self.away = True
