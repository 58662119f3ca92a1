"""The text of a ticket, both ways. That the controller's plugin reads the same: tests/unit/policy/test_tickets_lua.py."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurm_agent_tools.models.submission_ticket import (
    Ceilings,
    SubmissionTicket,
    parse_admin_comment,
    parse_ceilings,
    parse_claim,
    parse_ticket_file,
    ticket_file,
)

NUMBER = st.integers(0, 10**12)
NAME = st.text(min_size=1, max_size=12)
QOS = st.lists(NAME.filter(lambda name: "," not in name), min_size=1, max_size=3).map(",".join)
CEILINGS = st.builds(
    Ceilings, uid=NUMBER, expires=NUMBER, time_limit=st.none() | NUMBER, memory_per_node=st.none() | NUMBER,
    memory_per_gpu=st.none() | NUMBER, gpus=NUMBER, cpus=NUMBER, nodes=NUMBER, array_tasks=NUMBER, array_at_once=NUMBER,
    whole_nodes=st.booleans(), partitions=st.lists(NAME, max_size=3).map(tuple), qos=st.none() | QOS,
    account=st.none() | NAME,
)  # fmt: skip
TICKETS = st.builds(
    SubmissionTicket, st.from_regex("[0-9a-f]{32}", fullmatch=True), CEILINGS,
    st.none() | st.from_regex("[0-9a-f]{64}", fullmatch=True),
)  # fmt: skip
PLAIN = Ceilings(uid=1001, expires=1_900_000_000, time_limit=30, memory_per_node=16384, memory_per_gpu=None)


@given(CEILINGS)
def test_ceilings_come_back_from_their_text_and_no_name_gets_out_of_its_place(made: Ceilings):
    assert parse_ceilings(made.text) == made
    assert all(letter.isalnum() or letter in "=,-_:%" for letter in made.text)
    assert made.text.isascii()


@given(TICKETS)
def test_a_ticket_comes_back_from_its_claim_and_from_the_jobs_admin_comment(ticket: SubmissionTicket):
    assert parse_claim(ticket.claim) == ticket
    assert parse_admin_comment(ticket.admin_comment) == (ticket.nonce, ticket.ceilings)


@given(CEILINGS, CEILINGS)
def test_different_ceilings_have_different_texts(one: Ceilings, other: Ceilings):
    assert (one.text == other.text) == (one == other)


@given(st.binary(max_size=200), CEILINGS)
def test_a_file_holds_the_exact_script_and_no_other_is_read(script: bytes, allowed: Ceilings):
    ticket = SubmissionTicket("ab" * 16, allowed, hashlib.sha256(script).hexdigest())
    data = ticket_file(ticket, script)
    assert data.endswith(b"\n" + script)
    assert parse_ticket_file(data) == ticket
    for wrong in (data + b"x", data[:-1], data.replace(b"ticket 1", b"ticket 2")):
        with pytest.raises(ValueError, match="ticket"):
            parse_ticket_file(wrong)


def test_a_ticket_without_a_script_has_a_file_too():
    ticket = SubmissionTicket("ab" * 16, PLAIN, None)
    assert parse_ticket_file(ticket_file(ticket, None)) == ticket
    with pytest.raises(ValueError, match="not the one"):
        ticket_file(ticket, b"#!/bin/sh\n")


@pytest.mark.parametrize(
    "wrong",
    [
        "", "uid=1", PLAIN.text + ",more=1", PLAIN.text.replace("uid=1001", "uid=01001"),
        PLAIN.text.replace("uid=1001", "uid=-"), PLAIN.text.replace("gpus=0", "gpus=-"),
        PLAIN.text.replace("time=30", "time=-30"), PLAIN.text.replace("time=30", "time=1e9"),
        PLAIN.text.replace("whole=0", "whole=2"), PLAIN.text.replace("qos=-", "qos="),
        PLAIN.text.replace("qos=-", "qos=%zz"), PLAIN.text.replace("qos=-", "qos=%61"), PLAIN.text + "\n",
    ],
)  # fmt: skip
def test_a_text_that_is_not_to_the_letter_is_refused(wrong: str):
    with pytest.raises(ValueError, match="ticket"):
        parse_ceilings(wrong)


@pytest.mark.parametrize("text", [None, "", "looked at by ops", f"{'ab' * 16}:", f"{'ab' * 16}:uid=1", "xy" * 16])
def test_an_admin_comment_that_is_no_tickets_is_none(text: str | None):
    assert parse_admin_comment(text) is None


def test_a_ticket_needs_a_number_and_a_hash_that_are_such():
    for nonce in ("", "ab", "AB" * 16, "../" + "a" * 29, "ab" * 16 + "\n"):
        with pytest.raises(ValueError, match="number"):
            SubmissionTicket(nonce, PLAIN, None)
    with pytest.raises(ValueError, match="SHA-256"):
        SubmissionTicket("ab" * 16, PLAIN, "abc")


def test_names_with_signs_of_the_text_are_written_as_numbers():
    text = replace(PLAIN, partitions=("a,b", "c:d"), qos="x.y-z", account="-").text
    assert "partition=a%2Cb:c%3Ad,qos=x%2Ey%2Dz,account=%2D,dependency=-," in text
