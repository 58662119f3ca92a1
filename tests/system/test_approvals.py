"""A person's yes on the real cluster: asked at an MCP client, on a terminal, by signature; given once, to one plan."""

from __future__ import annotations

import json
import sqlite3
import sys
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.types import ElicitResult
from tests.system.faces import Place, at_terminal, call

pytestmark = pytest.mark.proves("approval-is-once-and-exact")
LONG = "#!/bin/bash\n#SBATCH --output=logs/slurm/%x-%j.out\n#SBATCH --partition=cpu\n#SBATCH --time=4-00:00:00\n"
ERAS = ["2026-07-28", "legacy"]


def write(place: Place, *lines: str, name: str = "long.sh", head: str = LONG) -> str:
    (place.project / name).write_text(head + "\n".join(lines or ("sleep 30",)) + "\n")
    place.own()
    return name


class Person:
    """Answers questions as told, and remembers them."""

    def __init__(self, *answers: ElicitResult | float) -> None:
        self.answers, self.questions = list(answers), []

    async def __call__(self, _: Any, params: Any) -> ElicitResult:
        self.questions.append(params.message)
        answer = self.answers.pop(0)
        if isinstance(answer, float):
            await anyio.sleep(answer)
            return YES
        return answer


YES = ElicitResult(action="accept", content={"approve": True})
NO = ElicitResult(action="accept", content={"approve": False})
DECLINE, DISMISS = ElicitResult(action="decline"), ElicitResult(action="cancel")


@asynccontextmanager
async def client(place: Place, person: Person | None, mode: str):
    extra = {} if person is None else {"elicitation_callback": person}
    async with Client(place.server(), mode=mode, **extra) as made:
        await call(made, "get_status")
        yield made


def queued(place: Place) -> int:
    return len(place.slurm("squeue", "-h", "-t", "pending,running", "-o", "%j").splitlines())


def log(place: Place) -> list[dict[str, Any]]:
    (path,) = (place.project.parent / ".state").rglob("decisions.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_yes_submits_exactly_what_was_shown_and_counts_once(fresh: Place, mode: str):
    write(fresh)
    person = Person(YES, DECLINE)
    async with client(fresh, person, mode) as made:
        reply = await call(made, "submit_job", script="long.sh")
        assert reply["status"] == "submitted", reply
        grant = reply["decision"]["approval"]
        assert grant["channel"] == "elicitation"
        assert reply["granted"]["time_limit_seconds"] == 4 * 24 * 3600
        assert "sleep 30" in person.questions[0]
        assert "time-limit" in person.questions[0]
        assert "4-00:00:00" in person.questions[0]
        again = await call(made, "submit_job", script="long.sh", justification="measures the noise of two runs")
    assert (again["status"], again["blocker"]) == ("blocked", "approval")
    assert len(person.questions) == 2
    assert queued(fresh) == 1
    events = [(entry["event"], entry.get("approval")) for entry in log(fresh)]
    assert ("approved", grant["id"]) in events


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("answer", [NO, DECLINE, DISMISS, ElicitResult(action="accept", content={"approve": "yes"})])
async def test_everything_but_a_plain_yes_submits_nothing_and_leaves_a_script(
    fresh: Place, mode: str, answer: ElicitResult
):
    write(fresh)
    person = Person(answer)
    async with client(fresh, person, mode) as made:
        reply = await call(made, "submit_job", script="long.sh")
        assert (reply["status"], reply["blocker"], reply["human_action_required"]) == ("blocked", "approval", True)
        assert (fresh.project / reply["artifacts"][0]).read_text().startswith("#!/bin/bash\n")
        again = await call(made, "submit_job", script="long.sh")
    assert again["status"] == "blocked"
    assert len(person.questions) == 1, "who said no is not asked again"
    assert queued(fresh) == 0


async def test_a_person_who_does_not_answer_in_time_submits_nothing(fresh: Place):
    write(fresh)
    fresh.extra["SLURM_AGENT_APPROVAL_TIMEOUT"] = "1"
    async with client(fresh, Person(3600.0), "legacy") as made:
        reply = await call(made, "submit_job", script="long.sh")
    assert (reply["status"], reply["blocker"]) == ("blocked", "approval")
    assert reply["manual_commands"][0] == f"slurm-agent-tools approve {reply['approval_id']}"
    assert queued(fresh) == 0


@pytest.mark.parametrize("mode", ERAS)
async def test_a_client_that_cannot_ask_leaves_the_question_for_a_terminal(fresh: Place, mode: str):
    write(fresh)
    async with client(fresh, None, mode) as made:
        reply = await call(made, "submit_job", script="long.sh")
    assert (reply["status"], reply["blocker"]) == ("blocked", "approval")
    assert reply["approval_id"]


@pytest.mark.parametrize("mode", ERAS)
async def test_a_script_that_changes_while_the_person_reads_is_not_what_was_approved(fresh: Place, mode: str):
    write(fresh)

    class Swapper(Person):
        async def __call__(self, context: Any, params: Any) -> ElicitResult:
            write(fresh, "sleep 31")
            return await super().__call__(context, params)

    person = Swapper(YES, DECLINE)
    async with client(fresh, person, mode) as made:
        reply = await call(made, "submit_job", script="long.sh")
    assert reply["status"] == "blocked"
    assert queued(fresh) == 0


def test_no_argument_and_no_pipe_approves(fresh: Place):
    write(fresh)
    name = blocked(fresh)
    for words in (["approve", name], ["approve", name, "--yes"], ["policy", "trust", "policies/x.yaml"]):
        done = fresh.run([sys.executable, "-m", "slurm_agent_tools", *words], stdin=b"yes\ntrust\n")
        assert done.returncode in (1, 2), (words, done)
    assert blocked(fresh) == name


def blocked(place: Place, *words: str) -> str:
    """Submit, be blocked, and return the question's id."""
    place.cli("get_status")
    code, reply = place.cli("submit_job", "--script=long.sh", *words)
    assert (code, reply["status"], reply["blocker"]) == (3, "blocked", "approval"), reply
    return reply["approval_id"]


def test_a_yes_on_a_terminal_lets_the_next_identical_call_through_once(fresh: Place):
    write(fresh)
    name = blocked(fresh)
    code, screen = at_terminal(fresh, ["approve", name], "y")
    assert code == 3, screen
    assert blocked(fresh) == name, "the question stays open"
    code, screen = at_terminal(fresh, ["approve", name], "yes")
    assert code == 0, screen
    assert "sleep 30" in screen
    assert queued(fresh) == 0, "approving submits nothing"
    code, reply = fresh.cli("submit_job", "--script=long.sh")
    assert (code, reply["status"], reply["decision"]["approval"]["channel"]) == (0, "submitted", "terminal"), reply
    assert blocked(fresh, "--justification=measures the noise of two runs") != name
    code, screen = at_terminal(fresh, ["approve", name], "yes")
    assert code == 2, "a used approval cannot be given again"
    assert "was used" in screen


def test_a_yes_to_one_plan_is_none_to_another(fresh: Place):
    write(fresh)
    name = blocked(fresh)
    assert at_terminal(fresh, ["approve", name], "yes")[0] == 0
    for change in (["--time-limit=5-00:00:00"], ["--args", "x"], ["--job-name=other"]):
        assert blocked(fresh, *change) != name
    write(fresh, "sleep 31")
    assert blocked(fresh) != name
    write(fresh)
    assert fresh.cli("submit_job", "--script=long.sh")[1]["status"] == "submitted"


def test_an_approval_of_another_project_or_with_hidden_signs_does_not_pass(fresh: Place):
    write(fresh)
    name = blocked(fresh)
    assert at_terminal(fresh, ["approve", name], "yes")[0] == 0
    other = fresh.another()
    other.extra |= {"XDG_STATE_HOME": fresh.environment()["XDG_STATE_HOME"], "HOME": fresh.environment()["HOME"]}
    (other.project / "logs/slurm").mkdir(parents=True, exist_ok=True)
    write(other)
    assert blocked(other) != name
    write(fresh, "sleep 30 # \u202eecho\x1b[2K", name="long.sh")
    again = blocked(fresh)
    _, screen = at_terminal(fresh, ["approve", again], "no")
    assert "\\u202e" in screen
    assert "\x1b[2K" not in screen


def test_a_declined_question_cannot_be_approved_later(fresh: Place):
    write(fresh)
    name = blocked(fresh)
    assert at_terminal(fresh, ["approve", name, "--decline"], "no")[0] == 0
    code, screen = at_terminal(fresh, ["approve", name], "yes")
    assert code == 2
    assert "was declined" in screen
    code, reply = fresh.cli("submit_job", "--script=long.sh")
    assert (code, reply["approval_id"]) == (3, None)


def key(place: Place, name: str) -> Path:
    path = place.project.parent / name
    place.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(path)])
    return path


def signing(place: Place, *keys: Path) -> None:
    """A person trusts a policy in which only signatures by these keys count."""
    lines = [f"{path.name}@site {path.with_suffix('.pub').read_text().rsplit(' ', 1)[0]}" for path in keys]
    policy = place.project.parent / "site.yaml"
    policy.write_text(f"approval_channels: [signed]\nallowed_signers: {json.dumps(lines)}\n")
    place.own()
    code, screen = at_terminal(place, ["policy", "trust", str(policy)], "trust")
    assert code == 0, screen


def test_a_signature_by_a_listed_key_counts_and_no_other_does(fresh: Place):
    write(fresh)
    ada, eve = key(fresh, "ada"), key(fresh, "eve")
    signing(fresh, ada)
    tool = [sys.executable, "-m", "slurm_agent_tools", "approve"]
    name = blocked(fresh)
    assert at_terminal(fresh, ["approve", name], "yes")[0] == 2, "a terminal does not count here"
    assert fresh.run([*tool, name, "--sign", str(ada)]).returncode == 1, "nobody read it"
    assert at_terminal(fresh, ["approve", name, "--sign", str(eve)], "sign")[0] == 2

    plan = fresh.run([*tool, name, "--show"]).stdout
    altered = fresh.project.parent / "altered"
    altered.write_bytes(plan.replace(b"4-00:00:00", b"0-00:01:00"))
    fresh.own()
    fresh.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "slurm-agent-tools", "-f", str(ada), str(altered)])
    assert fresh.run([*tool, name, "--signature", f"{altered}.sig"]).returncode == 2
    foreign = fresh.project.parent / "foreign"
    foreign.write_bytes(plan)
    fresh.own()
    fresh.run(["ssh-keygen", "-q", "-Y", "sign", "-n", "git", "-f", str(ada), str(foreign)])
    assert fresh.run([*tool, name, "--signature", f"{foreign}.sig"]).returncode == 2, "made for another purpose"
    assert blocked(fresh) == name

    code, screen = at_terminal(fresh, ["approve", name, "--sign", str(ada)], "sign")
    assert (code, "sleep 30" in screen) == (0, True), screen
    code, reply = fresh.cli("submit_job", "--script=long.sh")
    assert (code, reply["decision"]["approval"]["by"]) == (0, "ada@site"), reply
    second = blocked(fresh, "--justification=measures the noise of two runs")
    (fresh.project.parent / "foreign.sig").write_bytes(signature_of(fresh, name))
    fresh.own()
    assert fresh.run([*tool, second, "--signature", f"{foreign}.sig"]).returncode == 2, "a used signature, again"


def signature_of(place: Place, name: str) -> bytes:
    """The signature as the ledger keeps it: what an agent with a shell could copy."""
    (path,) = (place.project.parent / ".state").rglob("ledger.sqlite3")
    with closing(sqlite3.connect(path)) as db, db:
        return db.execute("SELECT signature FROM approvals WHERE id = ?", (name,)).fetchone()[0].encode()


def test_a_question_whose_text_was_exchanged_is_no_approval_of_what_it_hides(fresh: Place):
    write(fresh)
    name = blocked(fresh)
    (path,) = (fresh.project.parent / ".state").rglob("ledger.sqlite3")
    with closing(sqlite3.connect(path)) as db, db:
        text = db.execute("SELECT plan FROM approvals WHERE id = ?", (name,)).fetchone()[0]
        db.execute("UPDATE approvals SET plan = ? WHERE id = ?", (text.replace("sleep 30", "sleep 1"), name))
    fresh.own()
    code, screen = at_terminal(fresh, ["approve", name], "yes")
    assert (code, "is not what would run now" in screen) == (2, True)
    assert fresh.cli("submit_job", "--script=long.sh")[1]["status"] == "blocked"
