"""A question about one exact plan reaches the person at the client, in both eras; only a plain yes is a yes."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitResult
from tests.unit.server.answers import ANSWERS
from tests.unit.server.test_login import ERAS, Person

from slurm_agent_tools.models import arguments, shapes
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.services.approval import Question
from slurm_agent_tools.settings import Settings

YES = ElicitResult(action="accept", content={"approve": True})


class Guard:
    """A toolbox that asks a person before it answers. `plans`: what each question is about, in turn."""

    def __init__(self, *plans: str) -> None:
        self.plans, self.heard = list(plans), []

    async def call(self, name: str, ask: arguments.ToolArguments, *, consult: Any, **_: Any) -> shapes.Reply:
        plan = self.plans.pop(0) if len(self.plans) > 1 else self.plans[0]
        self.heard.append(await consult(Question(plan, f"Submit {plan}?")))
        return ANSWERS[name]


async def submit(guard: Guard, person: Person | None, era: str) -> Any:
    extra = {} if person is None else {"elicitation_callback": person}
    async with Client(build_server(guard, Settings(approval_timeout=5)), mode=era, **extra) as client:
        return await client.call_tool("submit_job", {"script": "job.sh"})


@pytest.mark.parametrize("era", ERAS)
async def test_a_yes_is_a_yes_and_the_whole_plan_was_shown(era: str):
    guard, person = Guard("plan-1"), Person(YES)
    assert not (await submit(guard, person, era)).is_error
    assert guard.heard == ["yes"]
    ((message, schema),) = person.shown
    assert message == "```\nSubmit plan-1?\n```"
    assert list(schema["properties"]) == ["approve"]
    assert "default" not in schema["properties"]["approve"]  # nothing is filled in before


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "answer",
    [
        ElicitResult(action="decline"),
        ElicitResult(action="cancel"),
        ElicitResult(action="accept"),
        ElicitResult(action="accept", content={"approve": False}),
        ElicitResult(action="accept", content={"approve": "true"}),
        ElicitResult(action="accept", content={"other": True}),
    ],
    ids=str,
)
async def test_anything_but_a_plain_yes_is_a_no(era: str, answer: ElicitResult):
    guard = Guard("plan-1")
    await submit(guard, Person(answer), era)
    assert guard.heard == ["no"]


@pytest.mark.parametrize("era", ERAS)
async def test_where_the_client_cannot_ask_that_is_said(era: str):
    guard = Guard("plan-1")
    await submit(guard, None, era)
    assert guard.heard == ["cannot"]


async def test_a_yes_to_one_plan_is_none_to_another():
    guard, person = Guard("plan-1", "plan-2"), Person(YES)
    await submit(guard, person, ERAS[0])
    assert [message.split("\n")[1] for message, _ in person.shown] == ["Submit plan-1?", "Submit plan-2?"]
    assert guard.heard == ["yes"]
