"""Tickets as files: whole, once, and gone when their time is over. The controller's part is a rename."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.submission_ticket import Ceilings, SubmissionTicket, ticket_file
from slurm_agent_tools.store.ticket_folder import USED, TicketFolder

SCRIPT = b"#!/bin/bash\nsrun python train.py\n"


def ticket(number: int, expires: int = 1000) -> SubmissionTicket:
    allowed = Ceilings(uid=1001, expires=expires, time_limit=30, memory_per_node=1024, memory_per_gpu=None)
    return SubmissionTicket(f"{number:032x}", allowed, hashlib.sha256(SCRIPT).hexdigest())


def spend(folder: Path, one: SubmissionTicket) -> None:
    (folder / one.nonce).rename(folder / USED / one.nonce)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / USED).mkdir()
    return tmp_path


def test_a_ticket_is_open_until_it_is_spent_or_its_time_is_over(folder: Path):
    tickets = TicketFolder(folder)
    for number, expires in ((1, 1000), (2, 1000), (3, 500)):
        tickets.add(ticket(number, expires), SCRIPT)
    spend(folder, ticket(2))
    states = [tickets.state(f"{number:032x}", now=600) for number in (1, 2, 3, 4)]
    assert states == ["open", "spent", "expired", "unknown"]
    assert tickets.open(now=600) == (ticket(1),)
    assert tickets.state(f"{3:032x}", now=500) == "open"


def test_its_file_is_whole_and_for_the_owner_and_the_group_alone(folder: Path):
    mask = os.umask(0o077)
    try:
        TicketFolder(folder).add(ticket(1), SCRIPT)
    finally:
        os.umask(mask)
    (file,) = [path for path in folder.iterdir() if path.is_file()]
    assert file.name == ticket(1).nonce
    assert file.read_bytes() == ticket_file(ticket(1), SCRIPT)
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_number_is_given_once(folder: Path):
    tickets = TicketFolder(folder)
    tickets.add(ticket(1), SCRIPT)
    with pytest.raises(StorageError, match="ticket of this number"):
        tickets.add(ticket(1), SCRIPT)
    assert [path.name for path in folder.iterdir() if path.is_file()] == [ticket(1).nonce]


def test_sweeping_removes_what_is_over_and_leaves_everything_else(folder: Path):
    tickets = TicketFolder(folder)
    for number, expires in ((1, 1000), (2, 1000), (3, 2000)):
        tickets.add(ticket(number, expires), SCRIPT)
    spend(folder, ticket(2))
    (folder / "README").write_text("of the site")
    (folder / ".draft-left").write_text("half")
    os.utime(folder / ".draft-left", (0, 0))
    assert tickets.sweep(now=1000) == 0
    assert tickets.sweep(now=1500) == 1
    assert tickets.sweep(now=4000) == 2
    assert tickets.state(ticket(2).nonce, now=4000) == "spent"
    assert tickets.sweep(now=1000 + 25 * 3600) == 1
    assert sorted(path.name for path in folder.iterdir()) == ["README", USED]
    assert list((folder / USED).iterdir()) == []


def test_a_ticket_is_taken_back_only_while_nobody_spent_it(folder: Path):
    tickets = TicketFolder(folder)
    for number in (1, 2):
        tickets.add(ticket(number), SCRIPT)
    spend(folder, ticket(2))
    assert [tickets.revoke(f"{number:032x}") for number in (1, 1, 2, 3)] == [True, False, False, False]
    assert tickets.state(ticket(2).nonce, now=0) == "spent"


@pytest.mark.parametrize("name", ["", "..", "../secret", "used", "AB" * 16, "ab" * 16 + "\n"])
def test_only_a_number_names_a_ticket(folder: Path, name: str):
    assert TicketFolder(folder).state(name, now=0) == "unknown"
    assert TicketFolder(folder).revoke(name) is False
    assert folder.is_dir()


def test_what_is_not_a_whole_ticket_counts_for_none(folder: Path):
    (folder / ticket(1).nonce).write_bytes(ticket_file(ticket(1), SCRIPT)[:-3])
    (folder / ticket(2).nonce).mkdir()
    os.mkfifo(folder / ticket(3).nonce)
    (folder / ticket(4).nonce).symlink_to("/etc/passwd")
    assert TicketFolder(folder).open(now=0) == ()
    assert {TicketFolder(folder).state(f"{number:032x}", now=0) for number in (1, 2, 3, 4)} == {"unknown"}


def test_a_folder_that_is_not_there_is_told(tmp_path: Path):
    with pytest.raises(StorageError, match="gone"):
        TicketFolder(tmp_path / "gone").add(ticket(1), SCRIPT)
