"""The toolbox over HTTP: scopes, and how a server that stops ends what goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest
from tests.unit.virtual_time import in_no_time, passed
from tests.watchdog import SECONDS

from slurm_agent_tools.api import catalogue
from slurm_agent_tools.api.toolbox import Toolbox, ToolCall
from slurm_agent_tools.errors import AccessError, ScopeMissing, ServerStopping, SlurmMissing
from slurm_agent_tools.models import arguments, report, shapes, submission_answer
from slurm_agent_tools.server.http.scope_check import READING, HttpVisit, ScopedToolbox, until, visit
from slurm_agent_tools.services.approval import Question
from slurm_agent_tools.services.context import Caller
from slurm_agent_tools.store.tokens import Scope, Token

NOW = datetime(2026, 1, 2, tzinfo=UTC)
JOB = shapes.JobShown(job_id="7", name="x", state="RUNNING")
WAIT = arguments.WaitForJob(job_id="7")
SUBMIT = arguments.SubmitJob(script="a.sh")
pytestmark = pytest.mark.proves("http-ends-well")


@dataclass
class NoLedger:
    """What is not written down."""

    lost: bool = False
    unwritten: None = None

    def for_reading(self) -> NoLedger:
        return self

    def log_problem(self) -> None:
        """The log is as it was."""


@dataclass
class NoContext:
    store: NoLedger = field(default_factory=NoLedger)

    async def db(self, ask: Callable[[], Any]) -> Any:
        return ask()


class NoContexts:
    async def at(self, cluster: str | None) -> Any:
        return NoContext()

    async def close(self) -> None: ...


class Tools(ScopedToolbox):
    """A toolbox whose tools do as the test says."""

    slow: bool = False

    def __init__(self, scope: Scope = "write") -> None:
        super().__init__(NoContexts())
        self.mine = HttpVisit(Token("alice", "1", "", scope, NOW, None))
        visit.set(self.mine)
        self.asked: list[float] = []
        self.held = anyio.Event()
        self.begun = anyio.Event()
        self.submitted = False
        self.computing: list[str] = []

    async def wait_for_job(self, ask: arguments.WaitForJob, call: ToolCall) -> report.WaitReply:
        self.asked.append(ask.timeout_seconds)
        self.begun.set()
        if ask.timeout_seconds > 0 or self.slow:
            await anyio.sleep_forever()
        return report.WaitReply(status="running", summary="Running.", as_of=NOW, job=JOB)

    async def submit_job(self, ask: arguments.SubmitJob, call: ToolCall) -> submission_answer.SubmitReply:
        self.begun.set()
        await self.held.wait()
        self.submitted = True
        return submission_answer.SubmitReply(status="submitted", summary="Submitted.", as_of=NOW)

    async def validate_config(self, ask: arguments.ValidateConfig, call: ToolCall) -> submission_answer.ValidateReply:
        self.computing.append(visit.get().token.name)
        await self.held.wait()
        return submission_answer.ValidateReply(status="valid", summary="Valid.", as_of=NOW)

    async def read(self, name: str, arguments: Mapping[str, str], **_: Any) -> str:
        """Stand in for Toolbox.view."""
        self.begun.set()
        await self.held.wait()
        return name

    async def log_refusal(self, tool: str, caller: Caller) -> None:
        self.refused = (tool, caller.principal)


async def together(*works: Callable[[], Awaitable[Any]]) -> list[Any]:
    answers: list[Any] = [None] * len(works)

    async def run(place: int) -> None:
        try:
            answers[place] = await works[place]()
        except AccessError as error:
            answers[place] = error

    with anyio.fail_after(SECONDS):
        async with anyio.create_task_group() as group:
            for place in range(len(works)):
                group.start_soon(run, place)
    return answers


@pytest.mark.parametrize("name", [tool.name for tool in catalogue.TOOLS if not tool.read_only])
async def test_a_reading_token_reaches_no_writing_tool_and_the_try_is_logged(name: str):
    tools = Tools("read")
    with pytest.raises(ScopeMissing, match="scope write"):
        await tools.call(name, SUBMIT, caller=Caller(principal="alice"))
    assert tools.refused == (name, "alice")
    assert not tools.begun.is_set()


def test_the_reading_tools_are_these():
    core = {"get_status", "wait_for_job", "analyze_log", "validate_config", "compare_results"}
    assert core | {"choose_backend", "get_campaign", "plan_jobs", "get_fleet"} == READING


async def test_a_wait_ends_with_the_present_state_when_the_server_stops():
    tools = Tools()

    async def stop() -> None:
        await tools.begun.wait()
        await tools.leave(5)

    reply, _ = await together(lambda: tools.call("wait_for_job", WAIT), stop)
    assert tools.asked == [45.0, 0.0]
    assert reply.job == JOB
    assert [alert.code for alert in reply.alerts] == ["server-stopping"]


@in_no_time
async def test_a_wait_whose_last_look_is_not_answered_ends_with_an_error():
    tools = Tools()
    tools.slow = True

    async def stop() -> None:
        await tools.begun.wait()
        await tools.leave(5)

    error, _ = await together(lambda: tools.call("wait_for_job", WAIT), stop)
    assert isinstance(error, ServerStopping)
    assert "the job goes on" in error.message
    assert passed() <= 5


@in_no_time
async def test_a_submission_is_waited_for_longer_than_anything_else_and_no_other_begins():
    tools = Tools()

    async def stop() -> None:
        await tools.begun.wait()
        await tools.leave(5)
        assert tools.submitted

    async def late() -> None:
        await tools.stopping.wait()
        with pytest.raises(ServerStopping, match="was not begun"):
            await tools.call("submit_job", SUBMIT)
        await anyio.sleep(30)
        tools.held.set()

    reply, _, _ = await together(lambda: tools.call("submit_job", SUBMIT), stop, late)
    assert reply.status == "submitted"


async def test_a_wait_ends_when_nobody_reads_its_answer():
    tools = Tools("read")

    async def leave() -> None:
        await tools.begun.wait()
        tools.mine.gone.set()

    error, _ = await together(lambda: tools.call("wait_for_job", WAIT), leave)
    assert isinstance(error, AccessError)
    assert tools.asked == [45.0]


async def test_a_person_is_not_waited_for_by_a_server_that_stops():
    tools = Tools()

    async def never(_: Question) -> Any:
        tools.begun.set()
        await anyio.sleep_forever()

    async def stop() -> None:
        await tools.begun.wait()
        tools.stopping.set()

    answer, _ = await together(lambda: tools._consult(never, Question("0", "?")), stop)
    assert answer == "timeout"


CHECK = arguments.ValidateConfig(config_path="a.yaml")
CROWD = 6


async def crowd(tools: Tools, then: Callable[[], None]) -> list[Any]:
    """Six checks of one token, what `then` does when as many as may have begun, and one of another token's."""

    async def other() -> None:
        await anyio.wait_all_tasks_blocked()
        visit.set(HttpVisit(Token("bob", "2", "", "read", NOW, None)))
        async with anyio.create_task_group() as group:
            group.start_soon(tools.call, "validate_config", CHECK)
            await anyio.wait_all_tasks_blocked()
            then()
            tools.held.set()

    return await together(*[lambda: tools.call("validate_config", CHECK)] * CROWD, other)


async def test_what_computes_for_one_token_takes_turns_and_leaves_room_for_another():
    tools = Tools("read")
    begun: list[str] = []
    answers = await crowd(tools, lambda: begun.extend(tools.computing))
    assert begun == ["alice"] * 4 + ["bob"]
    assert [answer.status for answer in answers[:CROWD]] == ["valid"] * CROWD
    assert tools.computing.count("alice") == CROWD


@pytest.mark.parametrize(("why", "said"), [("stopping", "was not begun"), ("gone", "nobody waits")])
async def test_what_has_not_got_its_turn_ends_with_the_server_and_with_its_caller(why: str, said: str):
    tools = Tools("read")
    answers = await crowd(tools, (tools.stopping if why == "stopping" else tools.mine.gone).set)
    late = [answer for answer in answers[:CROWD] if isinstance(answer, AccessError | ServerStopping)]
    assert len(late) == CROWD - 4
    assert all(said in error.message for error in late)
    assert tools.computing.count("alice") == 4


async def test_what_work_raises_is_raised_as_it_is():
    async def fail() -> None:
        raise SlurmMissing("no")

    with pytest.raises(SlurmMissing):
        await until(fail, anyio.Event())


async def test_a_reading_token_reads_resources_and_a_server_that_stops_waits_for_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Toolbox, "view", Tools.read)
    tools = Tools("read")

    async def stop() -> None:
        await tools.begun.wait()
        async with anyio.create_task_group() as group:
            group.start_soon(tools.leave, 5)
            await anyio.wait_all_tasks_blocked()
            tools.held.set()

    read, _ = await together(lambda: tools.view("policy", {}), stop)
    assert read == "policy"
    with pytest.raises(ServerStopping, match="policy was not read"):
        await tools.view("policy", {})
