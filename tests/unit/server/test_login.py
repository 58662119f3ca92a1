"""A login node's question reaches the person at the client, in both eras, and a password is never asked for there."""

from __future__ import annotations

from typing import Any

import pytest
from mcp import Client
from mcp.types import ElicitResult
from tests.unit.server.answers import ANSWERS

from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.models import arguments, shapes
from slurm_agent_tools.server.mcp_server import build_server
from slurm_agent_tools.settings import Settings

ERAS = ["2026-07-28", "legacy"]


class LoginNode:
    """A toolbox that has to log in before it can answer."""

    def __init__(self, *prompts: tuple[str, bool]) -> None:
        self.prompts, self.heard = prompts, []

    async def call(self, name: str, ask: arguments.ToolArguments, *, asked: Any, **_: Any) -> shapes.Reply:
        answers = await asked("ada@login", "Two factors are needed.", self.prompts)
        self.heard.append(answers)
        if answers is None:
            raise SlurmUnreachable("nobody answered the login node", hint="Use a key.")
        return ANSWERS[name]


class Person:
    def __init__(self, answer: ElicitResult) -> None:
        self.answer, self.shown = answer, []

    async def __call__(self, _: Any, params: Any) -> ElicitResult:
        self.shown.append((params.message, params.requested_schema))
        return self.answer


async def ask(node: LoginNode, person: Person | None, era: str) -> Any:
    extra = {} if person is None else {"elicitation_callback": person}
    async with Client(build_server(node, Settings(approval_timeout=5)), mode=era, **extra) as client:
        return await client.call_tool("get_status", {})


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.proves("codes-are-asked-and-not-kept")
async def test_a_code_is_asked_of_the_person_and_reaches_the_login_node(era: str):
    node, person = (
        LoginNode(("Verification code: ", False)),
        Person(ElicitResult(action="accept", content={"answer_1": "493817"})),
    )
    result = await ask(node, person, era)
    assert not result.is_error
    assert node.heard[-1] == ["493817"]
    ((message, schema),) = person.shown
    assert message == "ada@login\nTwo factors are needed."
    assert schema["properties"]["answer_1"]["title"] == "Verification code:"
    assert "493817" not in str(result)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "answer", [ElicitResult(action="decline"), ElicitResult(action="accept", content={"other": "1"})]
)
async def test_who_does_not_answer_gets_the_login_nodes_error(era: str, answer: ElicitResult):
    node = LoginNode(("Verification code: ", False))
    result = await ask(node, Person(answer), era)
    assert result.is_error
    assert result.structured_content["error"]["code"] == "cluster_unreachable"
    assert node.heard[-1] is None


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("prompt", ["Password: ", "ada@login's password:", "Passphrase for key /k: ", "PIN: "])
async def test_what_lasts_longer_than_a_login_is_never_asked_over_mcp(era: str, prompt: str):
    node, person = LoginNode((prompt, False)), Person(ElicitResult(action="accept", content={"answer_1": "x"}))
    assert (await ask(node, person, era)).is_error
    assert person.shown == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_cannot_ask_is_not_asked(era: str):
    node = LoginNode(("Verification code: ", False))
    assert (await ask(node, None, era)).is_error
    assert node.heard == [None]
