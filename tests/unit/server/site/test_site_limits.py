"""How much of the site's service one user gets: connections, calls, questions and room, and what the log says of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from tests.unit.server.site.site_in_memory import ALICE, BOB, LONG, SCRIPT, Site, site
from tests.watchdog import SECONDS

from slurm_agent_tools.errors import SiteUnreachable, StorageError
from slurm_agent_tools.server.site import remote_files, service, user_records
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.store.ticket_folder import TicketFolder
from slurm_agent_tools.transport import site_socket
from slurm_agent_tools.transport.site_socket import HELD, MOST, MOST_OF_ONE, BrokenFrame, CallLimits
from slurm_agent_tools.transport.unix_peer import UnixUser

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def words(made: Site, script: str = "job.sh") -> dict[str, object]:
    return {
        "arguments": {"script": script}, "caller": ["test", "1", "cli"], "analysed": [],
        "status_read": made.slurm.clock.now().isoformat(),
    }  # fmt: skip


async def test_one_user_has_so_many_connections_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(site_socket, "MOST_OF_ONE", 2)
    async with site(tmp_path) as made:
        limits = made.service._limits
        first, second = [await anyio.connect_unix(made.config.socket) for _ in range(2)]
        async with first, second:
            while limits.at_once(ALICE.uid) < 2:
                await anyio.lowlevel.checkpoint()
            with pytest.raises(SiteUnreachable, match="too many calls at once: 2 of one user"):
                await made.client().ask("questions", {})
            made.who = BOB
            assert (await made.client().ask("questions", {}))["questions"] == []
        made.who = ALICE
        while limits.at_once():
            await anyio.lowlevel.checkpoint()
        assert (await made.client().ask("questions", {}))["questions"] == []


def test_many_users_together_leave_a_connection_for_the_next_one():
    limits, held = CallLimits(100_000), []
    for _ in range(MOST_OF_ONE):  # each of so many takes all that it gets
        for uid in range(200):
            if limits.over(uid, NOW) is None:
                held.append(limits.call(uid))
                held[-1].__enter__()
    assert all(limits.at_once(uid) for uid in range(200))
    assert limits.over(1000, NOW) is None
    for call in held:
        call.__exit__(None, None, None)
    assert limits.at_once() == 0


def test_sixteen_users_do_not_fill_it():
    limits = CallLimits(100_000)
    for _ in range(MOST_OF_ONE):
        for uid in range(16):
            if limits.over(uid, NOW) is None:
                limits.call(uid).__enter__()
    assert limits.at_once() < MOST * 3 / 4


def test_the_calls_of_one_user_keep_a_part_of_the_bytes_and_give_them_back():
    limits, mine = CallLimits(100_000), HELD // 32
    with limits.call(ALICE.uid) as first, limits.call(ALICE.uid) as second, limits.call(BOB.uid) as other:
        first(mine)
        second(mine)
        second(mine)
        with pytest.raises(BrokenFrame, match="more than the service keeps"):
            first(mine)
        other(mine * 2)
    assert limits.refused() == {f"uid {ALICE.uid}, bytes": 1}
    with limits.call(ALICE.uid) as again:
        again(mine * 3)


async def test_one_user_calls_so_often_in_a_minute_and_is_told_the_limit(tmp_path: Path):
    async with site(tmp_path, calls_per_minute=10) as made:
        for _ in range(10):
            await made.client().ask("questions", {})
        with pytest.raises(SiteUnreachable, match=r"10 of one user in a minute \(calls_per_minute\)"):
            await made.client().ask("questions", {})
        made.who = BOB
        await made.client().ask("questions", {})
        made.who = ALICE
        made.slurm.clock.move(60)
        await made.client().ask("questions", {})


def test_a_clock_that_goes_back_locks_nobody_out():
    limits = CallLimits(10)
    assert [limits.over(1, NOW) for _ in range(10)] == [None] * 10
    assert limits.over(1, NOW) is not None
    assert limits.over(1, NOW - timedelta(hours=1)) is None


async def test_refusals_by_a_limit_are_one_line_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lines: list[tuple[str, dict[str, object]]] = []
    monkeypatch.setattr(service._log, "warning", lambda what, **facts: lines.append((what, facts)))
    monkeypatch.setattr(service, "_SWEEP", 0.01)
    async with site(tmp_path, calls_per_minute=10) as made:
        for made.who in (ALICE, BOB):
            for _ in range(40):
                try:
                    await made.client().ask("questions", {})
                except SiteUnreachable:
                    continue
        async with anyio.create_task_group() as group:
            group.start_soon(made.service.sweep)
            await anyio.sleep(0.2)
            group.cancel_scope.cancel()
    told = {f"uid {user.uid}, calls_per_minute": 30 for user in (ALICE, BOB)}
    assert lines == [("calls were refused by a limit", {"calls": told})]


def test_a_line_of_refusals_names_so_many_users_and_counts_the_rest():
    limits = CallLimits(10)
    for uid in range(50):
        for _ in range(11):
            limits.over(uid, NOW)
    told = limits.refused()
    assert len(told) == 21
    assert told["others"] == 30
    assert limits.refused() == {}


async def test_one_user_has_so_many_open_questions_in_all_projects(tmp_path: Path):
    text = 'limits: {time_limit: {free: "12:00:00", justify: "12:00:00"}}\n'
    async with site(tmp_path, text=text, open_questions=2) as made:
        for number in range(3):
            (made.project / f"{number}.sh").write_text(f"{LONG}echo {number}\n")
        answers = [await made.client().ask("judge", words(made, f"{number}.sh")) for number in (0, 1, 2, 1)]
        assert [bool(answer.get("question")) for answer in answers] == [True, True, False, True]
        assert "2 questions of yours wait for an answer, which is open_questions of this site" in answers[2]["note"]
        assert answers[1]["question"] == answers[3]["question"]
        await made.client().ask("answer", {"id": str(answers[0]["question"]), "decline": True})
        assert (await made.client().ask("judge", words(made, "2.sh")))["question"]


async def test_one_user_has_so_much_room_in_the_services_folder(tmp_path: Path):
    async with site(tmp_path, state_mebibytes=16) as made:
        assert (await made.client().ask("judge", words(made)))["token"]
        folder = made.users._users[ALICE.uid].folder
        os.truncate(folder / "decisions.jsonl", 17 * 2**20)
        with pytest.raises(StorageError, match=r"17 MiB of you, more than 16 \(state_mebibytes\)"):
            await made.client().ask("judge", words(made))
        made.who = BOB
        assert (await made.client().ask("judge", words(made)))["token"]


async def test_what_a_users_spent_tickets_take_counts_for_the_users_room(tmp_path: Path):
    async with site(tmp_path, state_mebibytes=16) as made:
        (made.project / "job.sh").write_text(SCRIPT + "# long\n" * 9_000)
        assert (await made.client().ask("judge", words(made)))["token"]
        (ticket,) = made.open_tickets()
        for number in range(300):  # as the controller leaves them
            (made.config.used / f"{number:032x}").write_bytes(ticket.read_bytes())
        folder = TicketFolder(made.config.tickets)
        folder.sweep(made.slurm.clock.now().timestamp())
        made.users.tickets.update(folder.bytes_of)
        with pytest.raises(StorageError, match=r"\d+ MiB of you, more than 16 \(state_mebibytes\)"):
            await made.client().ask("judge", words(made))
        made.who = BOB
        assert (await made.client().ask("judge", words(made)))["token"]


# --- What a caller tells of files -----------------------------------------------------------------------------------


async def told_to(made: Site, answer: Callable[[str], site_socket.SiteFrame]) -> tuple[dict[str, object] | None, int]:
    """What the service says at last to a caller who answers each look like this, and how often it looked."""
    looks = 0
    async with await anyio.connect_unix(made.config.socket) as stream:
        asked = {"call": "judge", "project": str(made.project), "facts": False, **words(made)}
        await site_socket.send(stream, site_socket.SiteFrame(asked))
        with suppress(BrokenFrame):
            while "ask" in (said := await site_socket.receive(stream)).words:
                looks += 1
                await site_socket.send(stream, answer(said.words["path"]))
            return dict(said.words), looks
    return None, looks


SCRIPT_OF_MANY = b"#!/bin/bash\n" + b"".join(b". ./f%d.sh\n" % n for n in range(300))


def honest(path: str, *, real: str = "", body: bytes = b"", **more: object) -> site_socket.SiteFrame:
    body = SCRIPT_OF_MANY if path.endswith("job.sh") else body
    stat = [len(body), "file", 0.0, 1000, 0o600, None]
    return site_socket.SiteFrame({"real": real or path, "stat": stat, "whole": True, **more}, body)


@pytest.mark.parametrize(
    "lie",
    [
        {"stat": [0, "file", -1e18, 1000, 0o600, None]}, {"stat": [0, "directory", 0.0, 1000, 0o600, None]},
        {"real": "\ud800"}, {"sizes": ["x"]}, {"sizes": [-1]},
    ],
)  # fmt: skip
async def test_what_cannot_be_so_of_a_file_ends_the_call_in_words(tmp_path: Path, lie: dict[str, object]):
    async with site(tmp_path) as made:
        answer, _ = await told_to(made, lambda path: honest(path, **({"whole": False} | lie)))  # type: ignore[arg-type]
        assert "the caller's files cannot be read" in str(answer)


@pytest.mark.parametrize(
    "more",
    [
        {"real": "/" + "a" * 4096}, {"more": "a" * 2**16}, {"stat": [0, "file", 0.0, [[]] * 9000, 0o600, None]},
        {"stat": [0, "file", 0.0, 0, 0o600, [1] * 9000]}, {"stat": [0, "file", 0.0, 0, {}, None]},
    ],
    ids=["a path", "other words", "a user", "a version", "a mode"],
)  # fmt: skip
async def test_an_answer_about_a_file_holds_no_more_than_one_can(tmp_path: Path, more: dict[str, object]):
    async with site(tmp_path) as made:
        said, looks = await told_to(made, lambda path: honest(path, **more))  # type: ignore[arg-type]
        assert looks == 1
        assert said is None or "cannot be read" in str(said["error"])


async def test_all_that_is_kept_of_a_callers_words_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_files, "MOST_BYTES", 2**20)
    async with site(tmp_path) as made:
        _, looks = await told_to(made, lambda path: honest(path, more="a" * 60_000))
        assert looks == 5  # four bytes for each letter


async def test_the_calls_of_one_user_share_what_the_service_keeps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(site_socket, "HELD", 2**23)
    async with site(tmp_path) as made:
        said, looks = await told_to(made, lambda path: honest(path, body=b"#" * 2**18))
        assert "more than the service keeps" in str(said), said
        assert looks == 5
        assert made.service._limits._held.total() == 0


async def test_the_ledgers_of_the_last_users_alone_stay_open_and_one_that_is_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(user_records, "_OPEN", 2)
    async with site(tmp_path) as made:
        crowd = [UnixUser(3000 + number, f"user{number}") for number in range(5)]
        with made.users.of(ALICE) as mine:
            for made.who in crowd:
                await made.client().ask("questions", {})
            with anyio.fail_after(SECONDS):
                while len(made.users._users) > 2:
                    await anyio.lowlevel.checkpoint()
            assert made.users._users[ALICE.uid] is mine
        for made.who in (crowd[0], ALICE):  # opened again, with what it knows
            assert "token" in await made.client().ask("judge", words(made))
        with anyio.fail_after(SECONDS):  # closed behind the answer
            while len(made.users._users) > 2:
                await anyio.lowlevel.checkpoint()
        assert list(made.users._users) == [crowd[0].uid, ALICE.uid]
        assert set(made.users._calls) == set(made.users._users)
        assert len(made.ledger(ALICE).open_submissions(Owner("alice", str(made.project), made.users._key))) == 1


async def test_an_exception_without_users_counts_for_no_caller_who_says_project_and_script_alone(tmp_path: Path):
    text = "limits: {time_limit: {free: '01:00:00', justify: '02:00:00'}}\nexceptions:\n- {rule: time-limit, reason: nightly validation, until: 2099-01-01, scripts: [job.sh]%s}\n"
    for more, good in (("", False), (", users: [bob]", False), (", users: [alice]", True)):
        folder = tmp_path / str(len(more))
        folder.mkdir()
        async with site(folder, text=text % more) as made:
            (made.project / "job.sh").write_text(LONG)
            assert ("token" in await made.client().ask("judge", words(made))) is good, more


async def test_what_all_users_ask_for_with_one_command_is_kept_once_for_all(tmp_path: Path):
    async with site(tmp_path) as made:
        with made.users.of(ALICE) as hers, made.users.of(BOB) as his:
            queues = [await records.slurm.queue(max_age=60) for records in (hers, his, hers)]
            assert queues[0] is queues[1] is queues[2]
            assert hers.slurm.calls["squeue"] == 1
            assert [len(records.slurm.mine(queues[0])) for records in (hers, his)] == [0, 0]
