"""A campaign's events while it is advanced: what is added to the ledger is added to the state, and told."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.event_sentences import told
from slurm_agent_tools.campaigns.ports import CampaignLog
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.campaign import CampaignEvent, Stamped
from slurm_agent_tools.transport.base import Clock


class EventRecord:
    """The state, as it is after all that is known to be in the ledger. `happened`: what was added, in sentences.

    `known`: a state that events of this log made before.
    """

    def __init__(self, log: CampaignLog, clock: Clock, known: CampaignState | None = None) -> None:
        self._log, self._clock = log, clock
        self.state = known or CampaignState()
        self.happened: list[str] = []

    async def refresh(self) -> None:
        """Take in what was added meanwhile. Raises StorageError.

        The last event that is known is read once more: where it is another, the ledger is another, and all is read.
        """
        known = self.state
        behind = await self._log.events(after=max(known.events - 1, 0))
        if known.events:
            if not behind or (behind[0].number, behind[0].at) != (known.events, known.last_at):
                behind, known = await self._log.events(), CampaignState()
            else:
                behind = behind[1:]
        self.state = fold(behind, known) if behind else known

    async def add(self, *events: CampaignEvent) -> bool:
        """Write down what follows from the state; False where that has moved meanwhile, and it is to be asked anew.

        Raises StorageError, before anything is written, for what does not fit.
        """
        if not events:
            return True
        fold(self._stamped(events), self.state)
        stamped = await self._log.append(events, expected=self.state.events)
        if stamped is None:
            await self.refresh()
            return False
        self.state = fold(stamped, self.state)
        self.happened += told(events, self.state)
        return True

    async def add_facts(self, *events: CampaignEvent) -> None:
        """Write down what happened outside: it did, whoever wrote something else meanwhile."""
        left = list(events)
        while left and not await self.add(*left):
            left = [event for event in left if self._fits(event)]

    def _fits(self, event: CampaignEvent) -> bool:
        try:
            fold(self._stamped([event]), self.state)
        except StorageError:
            return False
        return True

    def _stamped(self, events: Sequence[CampaignEvent]) -> list[Stamped]:
        now = self._clock.now()
        return [Stamped(number, now, event) for number, event in enumerate(events, self.state.events + 1)]
