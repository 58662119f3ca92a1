"""get_fleet: one look at nodes, queue and partitions, and the sections made of it. Each section stands alone."""

from __future__ import annotations

from functools import partial
from typing import Any

from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.fleet.fleet_facts import FleetFacts
from slurm_agent_tools.fleet.sections.section_list import SECTIONS, FleetSectionMaker
from slurm_agent_tools.models.fleet_answer import FleetReply, NotMeasured
from slurm_agent_tools.models.shapes import SectionError
from slurm_agent_tools.models.toolset_arguments import GetFleet
from slurm_agent_tools.services import present
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion, ask_all

_PARTITIONS_AGE = 60.0


async def get_fleet(context: ClusterContext, ask: GetFleet) -> FleetReply:
    """Never raises for Slurm: a section that could not be read holds the error. Raises InputError for `match`."""
    wanted = _wanted(ask)
    answers = _Answers(context)
    await answers.gather({name for one in wanted.values() for name in (*one.needs, *one.helps)})
    facts = await answers.facts(ask)
    made: dict[str, Any] = {name: _section(maker, facts, answers) for name, maker in wanted.items()}
    broken = [name for name, one in made.items() if isinstance(one, SectionError)]
    told: dict[str, NotMeasured] = {}
    for name, maker in wanted.items():
        told |= {} if name in broken else {one.what: one for one in maker.unknown(facts)}
    said = [maker.sentence(made[name]) for name, maker in wanted.items() if name not in broken]
    said += [f"Not readable: {', '.join(broken)}."] if broken else []
    return FleetReply(
        status="partial" if broken else "ok",
        summary=" ".join(text for text in said if text),
        as_of=context.clock.now(),
        not_measured=list(told.values()),
        **made,
    )


def _wanted(ask: GetFleet) -> dict[str, FleetSectionMaker]:
    """The sections that are asked for; with `match` and no others that alone."""
    named = set(ask.sections or (() if ask.match is not None else SECTIONS))
    named = named | {"match"} if ask.match is not None else named - {"match"}
    return {name: maker for name, maker in SECTIONS.items() if name in named}


def _section(maker: FleetSectionMaker, facts: FleetFacts, answers: _Answers) -> Any:
    try:
        for source in maker.needs:
            answers.questions[source].value()
        return maker.make(facts)
    except InputError:
        raise
    except AgentToolsError as error:
        return present.section_error(error)


class _Answers:
    """What was read for one call, each with its own answer or error."""

    def __init__(self, context: ClusterContext) -> None:
        self.context = context
        slurm, age = context.slurm, context.slurm.age_limit
        self.questions: dict[str, ConcurrentQuestion[Any]] = {
            "nodes": ConcurrentQuestion(partial(slurm.running.nodes, age)),
            "partitions": ConcurrentQuestion(partial(slurm.partitions, max_age=_PARTITIONS_AGE)),
            "reservations": ConcurrentQuestion(slurm.running.reservations),
        }
        self.config = ConcurrentQuestion(slurm.configuration)

    async def gather(self, wanted: set[str]) -> None:
        """Ask all that is wanted at once."""
        more = [self.config] if "partitions" in wanted else []
        await ask_all(*(one for name, one in self.questions.items() if name in wanted), *more)

    async def facts(self, ask: GetFleet) -> FleetFacts:
        """All that is known."""
        found = {name: one.answer for name, one in self.questions.items()}
        config = self.config.answer
        return FleetFacts(
            now=self.context.clock.now(),
            settings=self.context.settings.fleet,
            nodes=found["nodes"] or (),
            partitions=found["partitions"] or {},
            reservations=found["reservations"],
            preemption=None if config is None else config.get("PreemptType", "preempt/none").removeprefix("preempt/"),
            need=ask.match,
        )
