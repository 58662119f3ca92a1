"""Signed tickets of a site without a shared folder, the files of callers, and the socket that systemd hands over."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.unit.server.site.site_in_memory import ALICE, SCRIPT, Site, site

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import ConfigError, InputError, StorageError
from slurm_agent_tools.models import submission_ticket
from slurm_agent_tools.models.arguments import GetStatus
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.server.site import remote_files, service
from slurm_agent_tools.server.site.remote_files import RemoteFiles
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.ticket_issuer import TicketIssuer
from slurm_agent_tools.slurm.client import SlurmClient
from slurm_agent_tools.store.submissions import Owner
from slurm_agent_tools.store.ticket_folder import TicketFolder
from slurm_agent_tools.transport.local import LocalFiles
from slurm_agent_tools.transport.site_socket import SiteClient
from slurm_agent_tools.units import JobId

KEY = b"k" * 32


def words(made: Site) -> dict[str, object]:
    return {
        "arguments": {"script": "job.sh"}, "caller": ["test", "1", "cli"], "analysed": [],
        "status_read": made.slurm.clock.now().isoformat(),
    }  # fmt: skip


def owner_of(made: Site) -> Owner:
    """Alice in her project, as the service's ledger names them."""
    return made.users.context(made.users._users[ALICE.uid], str(made.project), RemoteFiles(None)).owner  # type: ignore[arg-type]


async def test_a_signed_ticket_proves_itself_and_counts_until_it_is_over(tmp_path: Path):
    (tmp_path / "key").write_bytes(KEY + b"\n")
    cap = "limits: {max_concurrent_jobs: 1}\n"
    async with site(tmp_path, text=cap, tokens="hmac", key=tmp_path / "key") as made:
        given = await made.client().ask("judge", words(made))
        assert given["word"].startswith("ticket=v1.")
        ticket = submission_ticket.verify(given["word"].removeprefix("ticket="), [KEY])
        assert ticket.ceilings.uid == ALICE.uid
        assert made.open_tickets() == []
        await made.client().ask("settle", {"token": given["token"]})  # nobody can take it back
        assert "token" not in await made.client().ask("judge", words(made))
        made.slurm.clock.move(made.config.ticket_seconds + 61)
        assert "token" not in await made.client().ask(
            "judge", words(made)
        )  # it may have been spent: looked for a while
        made.slurm.clock.move(61)
        assert "token" in await made.client().ask("judge", words(made))


async def test_what_no_ticket_is_for_is_told_and_logged(tmp_path: Path):
    async with site(tmp_path) as made:
        script = made.project / "job.sh"
        script.write_text(script.read_text().replace("#!/bin/bash\n", "#!/bin/bash\n#SBATCH --nodes=1-2\n", 1))
        for dry in (True, False):
            with pytest.raises(InputError, match="nodes are not one number"):
                await made.client().ask("judge", {**words(made), "dry": dry})
        last = made.ledger().decisions.read_text().splitlines()[-1]
        assert '"event":"refused"' in last.replace(" ", "")
        assert "nodes are not one number" in last


async def test_what_is_too_long_to_be_signed_uses_up_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(submission_ticket, "LONGEST_SIGNED_TICKET", 100)
    (tmp_path / "key").write_bytes(KEY)
    async with site(tmp_path, tokens="hmac", key=tmp_path / "key") as made:
        with pytest.raises(InputError, match="makes a ticket of more than 100 letters"):
            await made.client().ask("judge", words(made))
        assert made.ledger().open_submissions(owner_of(made)) == []


async def test_of_a_signed_ticket_no_comment_tells_that_it_was_spent_but_the_controllers_note(tmp_path: Path):
    (tmp_path / "key").write_bytes(KEY)
    cap = "limits: {max_concurrent_jobs: 2}\n"
    async with site(tmp_path, text=cap, tokens="hmac", key=tmp_path / "key") as made:
        given = await made.client().ask("judge", words(made))
        argv = ["sbatch", "--parsable", f"--comment={given['token']}"]
        bare = FakeSlurm._command(made.slurm, argv, SCRIPT.encode(), str(made.project), ALICE.name)
        await made.client().ask("settle", {"token": given["token"]})
        third = {**words(made), "arguments": {"script": "job.sh", "job_name": "third"}}
        assert "token" not in await made.client().ask("judge", third)  # the job and the ticket count, each for itself

        made.slurm.noted = {submission_ticket.verify(given["word"].removeprefix("ticket="), [KEY]).nonce: int(bare.out)}
        assert "token" in await made.client().ask("judge", third)
        owner = owner_of(made)
        assert [item.job_id for item in made.ledger().accepted(owner)] == [int(bare.out)]


async def test_a_comment_that_names_a_ticket_makes_it_no_spent_one(tmp_path: Path):
    """Else one job whose comment is changed again and again would free the slot of any number of tickets."""
    async with site(tmp_path, text="limits: {max_concurrent_jobs: 2}\n") as made:
        given = await made.client().ask("judge", words(made))
        (open_ticket,) = made.open_tickets()
        await made.tools.call("get_status", GetStatus())
        other = await made.submit(job_name="other")
        assert other.status == "submitted", other
        await made.client().ask("settle", {"token": other.token})
        job = made.slurm.job(int(other.job_id or 0))
        job.request = replace(job.request, comment=given["token"])
        third = {**words(made), "arguments": {"script": "job.sh", "job_name": "third"}}
        assert "token" not in await made.client().ask("judge", third)
        assert made.open_tickets() == [open_ticket]


async def test_a_ticket_whose_job_comes_into_the_queue_meanwhile_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The controller renames a ticket on a slow disk: its job is not in the queue yet, and is by the next look."""
    tickets_of = SlurmClient.tickets

    async def late(client: SlurmClient) -> Mapping[str, int]:
        if not made.slurm.noted:
            sent = FakeSlurm._command(made.slurm, ["sbatch", "--parsable"], SCRIPT.encode(), "/", ALICE.name)
            made.slurm.noted = {ticket.name: int(sent.out)}
        return await tickets_of(client)

    async with site(tmp_path, text="limits: {max_concurrent_jobs: 1}\n") as made:
        await made.client().ask("judge", words(made))
        (ticket,) = made.open_tickets()
        ticket.rename(made.config.used / ticket.name)
        monkeypatch.setattr(SlurmClient, "tickets", late)
        assert "token" not in await made.client().ask("judge", words(made))
        assert made.slurm.noted


async def test_of_a_job_that_is_over_the_accounting_tells_its_ticket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whose comment nobody sees any more: its hours count for the day all the same."""
    async with site(tmp_path) as made:
        given = await made.client().ask("judge", words(made))
        (ticket,) = made.open_tickets()
        ticket.rename(made.config.used / ticket.name)
        over = Job(JobId(77), "job.sh", "COMPLETED", ("sacct",), admin_comment=f"{ticket.name}:uid=1000")
        records = made.users._users[ALICE.uid]
        mark = f"--comment={given['token']}"  # of a short job, to be taken for the long one
        forged = FakeSlurm._command(made.slurm, ["sbatch", "--parsable", mark], b"#!/bin/sh\n", "/", ALICE.name)
        short = Job(JobId(int(forged.out)), "job.sh", "COMPLETED", ("sacct",), comment=given["token"])
        monkeypatch.setattr(type(records.slurm), "recent_all", lambda *_: answered(short, over))
        await made.client().ask("settle", {"token": given["token"]})
        made.slurm.clock.move(61)
        await made.client().ask("settle", {"token": given["token"]})
        owner = made.users.context(records, str(made.project), RemoteFiles(None)).owner  # type: ignore[arg-type]
        assert [item.job_id for item in records.store.accepted(owner)] == [77]


async def answered(*jobs: Job) -> tuple[Job, ...]:
    return jobs


async def test_a_script_that_is_too_long_to_be_signed_is_refused_in_words(tmp_path: Path):
    (tmp_path / "key").write_bytes(KEY)
    async with site(tmp_path, tokens="hmac", key=tmp_path / "key") as made:
        (made.project / "job.sh").write_text(SCRIPT + "# long\n" * 2000)
        with pytest.raises(InputError, match=r"script is longer than \d+ bytes"):
            await made.client().ask("judge", words(made))


@pytest.mark.parametrize(("key", "said"), [(None, "cannot be read"), (b"short", "is shorter than 32 bytes")])
def test_a_service_without_a_good_key_does_not_begin(tmp_path: Path, key: bytes | None, said: str):
    if key is not None:
        (tmp_path / "key").write_bytes(key)
    config = SiteConfig(socket=Path("/run/s/s"), tokens="hmac", key=tmp_path / "key")
    with pytest.raises(ConfigError, match=said):
        TicketIssuer(config)


async def test_a_caller_who_tells_too_much_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(remote_files, "MOST_QUESTIONS", 1)
    async with site(tmp_path) as made:
        with pytest.raises((InputError, StorageError), match="more than the site's service reads"):
            await made.client().ask("judge", words(made))


async def test_the_service_writes_no_file_of_a_user():
    files = RemoteFiles(None)  # type: ignore[arg-type]  # nothing is asked
    for write in (files.write_new, files.append, files.write_over, files.move_over, files.link_over):
        with pytest.raises(StorageError, match="writes no file"):
            await write("/home/alice/x", b"")
    for change in (files.remove, files.make_folder):
        with pytest.raises(StorageError, match="writes no file"):
            await change("/home/alice/x")


async def test_a_socket_that_systemd_opened_is_taken_and_one_of_another_process_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    handed = socket.socket(socket.AF_UNIX)
    handed.bind(str(tmp_path / "handed"))
    handed.listen()
    monkeypatch.setattr(service, "_FD", handed.detach())
    monkeypatch.setenv("LISTEN_FDS", "1")
    config = SiteConfig(socket=tmp_path / "own" / "s")
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    async with await service.listen(config), await anyio.connect_unix(tmp_path / "handed"):
        assert not config.socket.exists()
    monkeypatch.setenv("LISTEN_PID", str(os.getpid() + 1))
    async with await service.listen(config), await anyio.connect_unix(config.socket):
        assert config.socket.stat().st_mode & 0o777 == 0o666


async def test_of_two_sockets_that_systemd_opened_each_is_known_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    config = SiteConfig(socket=tmp_path / "s", page_origin="https://approve.example.org")
    for fd, path in enumerate((config.socket, config.page_socket), 200):
        with socket.socket(socket.AF_UNIX) as handed:
            handed.bind(str(path))
            handed.listen()
            os.dup2(handed.fileno(), fd)
    monkeypatch.setattr(service, "_FD", 200)
    monkeypatch.setenv("LISTEN_FDS", "2")
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    async with await service.listen(config) as ours, await service.listen(config, page=True) as page:
        for one, path in ((ours, config.socket), (page, config.page_socket)):
            assert one.extra(anyio.abc.SocketAttribute.local_address) == str(path)  # noqa: S610 - anyio's
        monkeypatch.setenv("LISTEN_FDS", "1")
        with pytest.raises(ConfigError, match="needs the socket"):
            await service.listen(config, page=True)


@pytest.mark.parametrize("started", [True, False])
async def test_an_array_counts_by_what_its_ticket_lets_in_whatever_its_owner_makes_of_the_throttle(
    tmp_path: Path, started: bool
):
    """It was made less while four tasks ran, or before they did and more again afterwards: ten jobs of four."""
    async with site(tmp_path, text="limits: {max_concurrent_jobs: 4}\n") as made:
        (made.project / "job.sh").write_text(SCRIPT.replace("--mem", "--array=0-7%4\n#SBATCH --mem"))
        given = await made.client().ask("judge", words(made))
        argv = ["sbatch", "--parsable", f"--comment={given['token']} {given['word']}", *([] if started else ["--hold"])]
        script = (made.project / "job.sh").read_bytes()
        sent = made.slurm._command(argv, script, str(made.project), ALICE.name)
        assert sent.code == 0, sent
        made.slurm.clock.move(1)
        change = ["scontrol", "update", f"JobId={sent.out.strip()}", "ArrayTaskThrottle=1"]
        assert made.slurm._command(change, b"", str(made.project), ALICE.name).code == 0
        (made.project / "job.sh").write_text(SCRIPT)
        assert "token" not in await made.client().ask("judge", words(made))
        other = tmp_path / "other"  # the limit is the user's, whatever project a call is for
        other.mkdir()
        (other / "job.sh").write_text(SCRIPT)
        client = SiteClient(str(made.config.socket), str(other), LocalFiles())
        assert "token" not in await client.ask("judge", words(made))


@pytest.mark.parametrize("hours", [1, 25])
async def test_a_spent_ticket_whose_file_is_gone_is_told_by_its_job(tmp_path: Path, hours: int):
    """A day after its time the service removes it, and an array that was held counted as one: seven ran of four."""
    async with site(tmp_path, text="limits: {max_concurrent_jobs: 4}\n") as made:
        (made.project / "job.sh").write_text(SCRIPT.replace("--mem", "--array=0-7%4\n#SBATCH --mem"))
        given = await made.client().ask("judge", words(made))
        argv = ["sbatch", "--parsable", "--hold", f"--comment={given['token']} {given['word']}"]
        sent = made.slurm._command(argv, (made.project / "job.sh").read_bytes(), str(made.project), ALICE.name)
        job = sent.out.strip()
        made.slurm.clock.move(hours * 3600)
        if hours == 1:
            made.spent_tickets()[0].unlink()  # somebody else did
        TicketFolder(made.config.tickets).sweep(made.slurm.clock.now().timestamp())
        assert made.spent_tickets() == []
        change = ["scontrol", "update", f"JobId={job}", "ArrayTaskThrottle=1"]
        assert made.slurm._command(change, b"", str(made.project), ALICE.name).code == 0
        (made.project / "job.sh").write_text(SCRIPT)
        assert "token" not in await made.client().ask("judge", words(made))
        owner = made.users.context(made.users._users[ALICE.uid], str(made.project), RemoteFiles(None)).owner  # type: ignore[arg-type]
        assert [(item.phase, item.job_id) for item in made.ledger().accepted(owner)] == [("released", int(job))]


@pytest.mark.parametrize(("hours", "looks"), [(1, 0), (25, 1)])
async def test_a_ticket_that_was_swept_and_has_no_job_frees_its_slot(tmp_path: Path, hours: int, looks: int):
    async with site(tmp_path, text="limits: {max_concurrent_jobs: 1}\n") as made:
        await made.client().ask("judge", words(made))
        made.slurm.clock.move(hours * 3600)
        assert TicketFolder(made.config.tickets).sweep(made.slurm.clock.now().timestamp()) == 1
        for _ in range(looks):  # so late it may have been spent, which the accounting tells
            assert "token" not in await made.client().ask("judge", words(made))
            made.slurm.clock.move(61)
        assert "token" in await made.client().ask("judge", words(made))


@pytest.mark.parametrize(("word", "given"), [("_*", False), ("_0", False), ("", True)])
async def test_a_job_behind_all_tasks_of_a_job_that_is_no_array_gets_no_ticket_beside_four(
    tmp_path: Path, word: str, given: bool
):
    """Slurm lifts such a dependency at once: five ran of four."""
    async with site(tmp_path, text="limits: {max_concurrent_jobs: 4}\n") as made:
        for number in range(4):
            argv = ["sbatch", "--parsable", f"--job-name=train-{number}"]
            sent = FakeSlurm._command(made.slurm, argv, SCRIPT.encode(), str(made.project), ALICE.name)
        made.slurm.clock.move(1)
        line = f"#SBATCH --dependency=afterany:{sent.out.strip()}{word}\n#SBATCH --mem"
        (made.project / "job.sh").write_text(SCRIPT.replace("#SBATCH --mem", line))
        answer = await made.client().ask("judge", words(made))
        assert ("token" in answer) == given
        assert ("5 concurrent jobs with this one" in answer["decision"]) != given
