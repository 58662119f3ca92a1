"""The site's service over a real socket: what it gives, counts, asks and keeps to itself."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from tests.unit.server.site.site_in_memory import ALICE, BOB, LONG, REFUSED, SCRIPT, Site, serving, site
from tests.watchdog import eventually

from slurm_agent_tools.errors import AccessError, InputError, SiteUnreachable, SlurmRefused
from slurm_agent_tools.models.arguments import GetStatus, SubmitJob
from slurm_agent_tools.models.submission_answer import SubmitReply
from slurm_agent_tools.transport import signature, site_socket, unix_peer

JUDGE = {"arguments": {"script": "job.sh"}, "caller": ["test", "1", "cli"], "status_read": None, "analysed": []}


async def looked(made: Site) -> None:
    await made.tools.call("get_status", GetStatus())


# --- an honest user ---------------------------------------------------------------------------------------------------


async def test_an_allowed_job_is_sent_with_a_ticket_that_is_spent(tmp_path: Path):
    async with site(tmp_path) as made:
        await looked(made)
        reply = await made.submit()
        assert reply.status == "submitted", reply
        job = made.slurm.job(int(reply.job_id or 0))
        assert job.request.script == SCRIPT.encode()
        assert job.request.comment == reply.token
        assert (made.open_tickets(), len(made.spent_tickets())) == ([], 1)
        assert reply.decision is not None
        assert any("/etc/slurm-agent-tools/policy.yaml" in layer for layer in reply.decision.policy.layers)


async def test_a_dry_run_is_judged_and_gets_no_ticket(tmp_path: Path):
    async with site(tmp_path) as made:
        await looked(made)
        reply = await made.submit(dry_run=True)
        assert reply.status == "dry_run", reply
        assert made.open_tickets() + made.spent_tickets() == []


@pytest.mark.parametrize("option", ["--account=", "--qos="])
async def test_an_empty_name_is_refused_by_its_name_and_value(tmp_path: Path, option: str):
    async with site(tmp_path) as made:
        await looked(made)
        (made.project / "job.sh").write_text(SCRIPT.replace("sleep 5", f"#SBATCH {option}\nsleep 5"))
        reply = await made.submit()
        told = reply.model_dump_json()
        assert (reply.status, "an empty word names nothing: ''" in told, "write a name" in told) == (
            "blocked",
            True,
            True,
        )
        assert made.open_tickets() + made.spent_tickets() == []


async def test_what_slurm_refuses_leaves_no_ticket_and_no_slot_taken(tmp_path: Path):
    async with site(tmp_path, text="limits: {max_concurrent_jobs: 1}\n") as made:
        await looked(made)
        made.slurm.fail("sbatch", REFUSED)
        made.slurm.fail("sbatch", "sbatch: error: Batch job submission failed: Invalid account")
        with pytest.raises(SlurmRefused, match="Invalid account"):
            await made.submit()
        assert made.open_tickets() + made.spent_tickets() == []
        assert (await made.submit()).status == "submitted"


async def test_a_ticket_that_nobody_spends_holds_a_slot_until_its_time_is_over(tmp_path: Path):
    async with site(tmp_path, text="limits: {max_concurrent_jobs: 1}\n") as made:
        await looked(made)
        words = {**JUDGE, "status_read": made.slurm.clock.now().isoformat()}
        first = await made.client().ask("judge", words)
        assert first["token"]
        assert "token" not in await made.client().ask("judge", words)
        made.slurm.clock.move(made.config.ticket_seconds + 1)
        words["status_read"] = made.slurm.clock.now().isoformat()
        assert (await made.client().ask("judge", words))["token"]
        assert len(made.open_tickets()) == 1


async def test_of_a_race_over_several_connections_no_more_than_the_cap_get_tickets(tmp_path: Path):
    async with site(tmp_path) as made:
        words = {**JUDGE, "status_read": made.slurm.clock.now().isoformat()}
        given: list[object] = []

        async def ask(number: int) -> None:
            arguments = {"script": "job.sh", "job_name": f"racer-{number}"}
            answer = await made.client().ask("judge", {**words, "arguments": arguments})
            given.append(answer.get("token"))

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(ask, number)
        assert len([token for token in given if token]) == 4
        assert len(made.open_tickets()) == 4


async def test_a_script_that_changes_while_it_is_judged_is_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with site(tmp_path) as made:
        await looked(made)
        honest = made.service._answer

        async def slow(*args: object) -> dict[str, object]:
            (made.project / "job.sh").write_text(SCRIPT + "sleep 6\n")
            return await honest(*args)  # type: ignore[arg-type]

        monkeypatch.setattr(made.service, "_answer", slow)
        with pytest.raises(InputError, match="has changed while it was judged"):
            await made.submit()
        assert made.open_tickets() == []
        assert "sbatch" not in made.slurm.counts


# --- a person's yes ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("keys")
    for name in ("ada", "somebody"):
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)], check=True
        )
    return folder


def asking(keys: Path) -> str:
    """A policy under which a long job needs ada's signature."""
    line = f"ada {' '.join((keys / 'ada.pub').read_text().split()[:2])}"
    return (
        'limits: {time_limit: {free: "12:00:00", justify: "12:00:00"}}\n'
        f"approval_channels: [signed]\nallowed_signers: ['{line}']\n"
    )


async def test_a_signed_yes_is_given_at_the_service_and_counts_once(tmp_path: Path, keys: Path):
    async with site(tmp_path, text=asking(keys)) as made:
        (made.project / "job.sh").write_text(LONG)
        await looked(made)
        blocked = await made.submit()
        assert (blocked.status, blocked.blocker) == ("blocked", "approval")
        assert f"approve --socket {made.config.socket}" in blocked.manual_commands[0]
        assert made.open_tickets() == []
        client, name = made.client(), blocked.approval_id
        assert [one["id"] for one in (await client.ask("questions", {}))["questions"]] == [name]
        text = (await client.ask("question", {"id": name}))["text"]
        for key, counts in (("somebody", False), ("ada", True)):
            proof = await signature.sign(text, keys / key)
            words = {"id": name, "channel": "signed", "proof": proof, "who": None}
            if counts:
                assert (await client.ask("answer", words))["by"] == "ada"
            else:
                with pytest.raises(InputError, match="does not count"):
                    await client.ask("answer", words)
        sent = await made.submit()
        assert sent.status == "submitted", sent
        again = await made.submit(idempotency_key="another")
        assert (again.status, again.blocker) == ("blocked", "approval")


async def test_a_user_reads_one_script_at_a_time_for_questions_too(tmp_path: Path, keys: Path):
    """Else whoever asks for a question of a long script again and again keeps all others waiting."""
    async with site(tmp_path, text=asking(keys)) as made:
        (made.project / "job.sh").write_text(LONG)
        await looked(made)
        name, told = (await made.submit()).approval_id, []

        async def show() -> None:
            told.append(await made.client().ask("question", {"id": name}))

        reading = made.users._users[ALICE.uid].reading
        async with anyio.create_task_group() as group, reading:
            group.start_soon(show)
            await eventually(lambda: reading.statistics().tasks_waiting == 1)
            assert told == []
        assert told[0]["id"] == name


async def test_a_yes_that_is_typed_or_taken_from_elsewhere_is_none(tmp_path: Path, keys: Path):
    async with site(tmp_path, text=asking(keys)) as made:
        (made.project / "job.sh").write_text(LONG)
        await looked(made)
        name = (await made.submit()).approval_id
        for channel in ("terminal", "elicitation", None):
            with pytest.raises(InputError, match="channel"):
                await made.client().ask("answer", {"id": name, "channel": channel, "proof": "yes"})
        store = made.tools.context.store  # what a job of the user can write
        with pytest.raises(InputError, match="is no question"):
            await made.client().ask("question", {"id": "00000000"})
        assert store.approvals.open(made.tools.context.owner) == []
        assert (await made.submit()).status == "blocked"


async def signed_yes(made: Site, keys: Path) -> site_socket.SiteClient:
    """The caller's program, after a person signed what was asked about the long job."""
    (made.project / "job.sh").write_text(LONG)
    await looked(made)
    client, name = made.client(), (await made.submit()).approval_id
    proof = await signature.sign((await client.ask("question", {"id": name}))["text"], keys / "ada")
    await client.ask("answer", {"id": name, "channel": "signed", "proof": proof, "who": None})
    return client


async def test_a_yes_comes_back_with_a_ticket_that_was_not_spent(tmp_path: Path, keys: Path):
    async with site(tmp_path, text=asking(keys)) as made:
        client = await signed_yes(made, keys)
        words = {**JUDGE, "status_read": made.slurm.clock.now().isoformat()}
        first = await client.ask("judge", words)
        assert first["token"]
        assert "token" not in await client.ask("judge", words)
        await client.ask("settle", {"token": first["token"]})
        assert made.open_tickets() == []
        assert (await made.submit()).status == "submitted"


async def test_a_no_is_not_asked_again(tmp_path: Path, keys: Path):
    async with site(tmp_path, text=asking(keys)) as made:
        (made.project / "job.sh").write_text(LONG)
        await looked(made)
        name = (await made.submit()).approval_id
        await made.client().ask("answer", {"id": name, "decline": True})
        reply = await made.submit()
        assert reply.approval_id is None
        assert "declined" in (reply.reason or "")


# --- a service that ends in the middle --------------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["before the ticket lies there", "behind it"])
async def test_what_a_killed_service_leaves_is_taken_up_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: Path, point: str
):
    """A yes is used up with the ledger's entry, and comes back only where no ticket can be spent any more."""
    async with site(tmp_path, text=asking(keys)) as made:
        client = await signed_yes(made, keys)
        publish = made.service._issuer.publish

        def killed(*args: object) -> str:
            if point == "behind it":
                publish(*args)  # type: ignore[arg-type]
            raise RuntimeError("killed")

        def words() -> dict[str, object]:
            return {**JUDGE, "status_read": made.slurm.clock.now().isoformat()}

        with monkeypatch.context() as patch:
            patch.setattr(made.service._issuer, "publish", killed)
            with pytest.raises(SiteUnreachable):
                await client.ask("judge", words())
        made.users.close()  # and nothing but the disk is left
        made.users._users.clear()

        lies = point == "behind it"
        assert len(made.open_tickets()) == lies
        again = await client.ask("judge", words())
        assert ("token" in again) is not lies
        if lies:  # nobody was told of that ticket: it is taken back once it is over, and the yes can be used
            made.slurm.clock.move(made.config.ticket_seconds + 1)
            assert "token" in await client.ask("judge", words())
        assert len(made.open_tickets()) == 1
        assert "token" not in await client.ask("judge", words())


# --- one user and another ---------------------------------------------------------------------------------------------


async def test_nobody_is_told_of_another_users_questions_tickets_and_jobs(tmp_path: Path, keys: Path):
    async with site(tmp_path, text=asking(keys)) as made:
        (made.project / "job.sh").write_text(LONG)
        await looked(made)
        name = (await made.submit()).approval_id
        words = {**JUDGE, "arguments": {"script": "short.sh"}, "status_read": made.slurm.clock.now().isoformat()}
        (made.project / "short.sh").write_text(SCRIPT)
        mine = await made.client().ask("judge", words)
        made.who = BOB
        assert (await made.client().ask("questions", {}))["questions"] == []
        with pytest.raises(InputError, match="is no question of this user"):
            await made.client().ask("question", {"id": name})
        with pytest.raises(InputError, match="is no question of this user"):
            await made.client().ask("answer", {"id": name, "decline": True})
        await made.client().ask("settle", {"token": mine["token"]})
        assert len(made.open_tickets()) == 1
        made.who = ALICE
        await made.client().ask("settle", {"token": mine["token"]})
        assert made.open_tickets() == []


async def test_a_ticket_is_for_the_user_whom_the_kernel_names(tmp_path: Path):
    async with site(tmp_path) as made:
        made.who = BOB
        words = {**JUDGE, "status_read": made.slurm.clock.now().isoformat(), "user": "alice", "uid": ALICE.uid}
        assert (await made.client().ask("judge", words))["token"]
        (ticket,) = made.open_tickets()
        assert f"uid={BOB.uid}," in ticket.read_text()


def test_root_and_strangers_are_turned_away():
    with pytest.raises(AccessError, match="root's requests"):
        unix_peer.user(0)
    with pytest.raises(AccessError, match="knows no user"):
        unix_peer.user(2**31 - 5)


def test_the_user_is_the_one_that_the_kernel_names(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(unix_peer, "user", lambda number: number)
    one, other = socket.socketpair()
    with one, other:
        assert unix_peer.peer(one) == os.geteuid()


# --- what is no honest client -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"\0\0\0", b"GET / HTTP/1.1\r\n\r\n", struct.pack("!II", 2**31, 0), struct.pack("!II", 2, 2**31) + b"{}",
        struct.pack("!II", 4, 0) + b"nope", struct.pack("!II", 2, 0) + b"[]", struct.pack("!II", 9000, 0) + b"[" * 9000,
    ],
)  # fmt: skip
async def test_what_is_no_frame_ends_its_own_connection_alone(tmp_path: Path, sent: bytes):
    async with site(tmp_path) as made:
        async with await anyio.connect_unix(made.config.socket) as stream:
            if sent:
                await stream.send(sent)
            await stream.send_eof()
            with pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
                await stream.receive()
        assert (await made.client().ask("questions", {}))["questions"] == []


@pytest.mark.parametrize(
    "words",
    [
        {"call": "judge"}, {"call": "judge", "arguments": {"script": 3}, "caller": ["a", "b", "c"]}, {"call": "become"},
        {"call": "judge", "arguments": {"script": "job.sh"}, "caller": "x"}, {"call": "answer"}, {"call": None},
        {"call": "questions", "project": "../x"}, {"call": "questions", "project": "/a/../b"}, {"call": "questions", "project": 3},
    ],
    ids=json.dumps,
)  # fmt: skip
async def test_odd_words_are_refused_in_words(tmp_path: Path, words: dict[str, object]):
    async with site(tmp_path) as made:
        async with await anyio.connect_unix(made.config.socket) as stream:
            await site_socket.send(stream, site_socket.SiteFrame({"project": str(made.project), **words}))
            told = await site_socket.receive(stream)
        assert told.words["error"]["code"] == "invalid_input", told
        assert made.open_tickets() == []


async def test_a_client_reads_for_the_service_inside_its_project_alone(tmp_path: Path):
    async with site(tmp_path) as made:
        (tmp_path / "secret").write_text("secret")
        (made.project / "way").symlink_to(tmp_path / "secret")
        client = made.client()
        for path in (
            str(tmp_path / "secret"),
            str(made.project / "way"),
            str(made.project / "../secret"),
            "/etc/passwd",
        ):
            for kind, what in (("look", 2**20), ("read", [[0, 10]]), ("list", None)):
                told = await client._of_files({"ask": kind, "path": path, "what": what})
                assert told.body == b""
                assert told.words.get("stat") is None
                assert told.words.get("names") is None


async def test_a_service_that_is_away_sends_nothing_and_says_so(tmp_path: Path):
    async with site(tmp_path) as made:
        await looked(made)
        made.config.socket.unlink()
        with pytest.raises(SiteUnreachable, match="does not answer"):
            await made.submit()
        assert "sbatch" not in made.slurm.counts
        async with serving(made):
            reply = await made.tools.call("submit_job", SubmitJob(script="job.sh"))
            assert isinstance(reply, SubmitReply)
            assert reply.status == "submitted"
