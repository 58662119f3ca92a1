"""Answers of passkeys: one to this very text, by a listed key, verified, of this origin, and no other."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from tests.unit.authenticators import Authenticator

from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.allowed_passkeys import encoded, parse
from slurm_agent_tools.transport import passkeys
from slurm_agent_tools.transport.passkeys import PasskeyAnswer, PasskeyRefused, challenge

PLAN, NONCE, PAGE = "slurm-agent-tools approval\nid: a1\n", b"n" * 32, "http://localhost:8000"


@pytest.fixture
def key() -> Authenticator:
    return Authenticator()


def verify(key: Authenticator, answer: dict[str, Any], plan: str = PLAN, nonce: bytes = NONCE, **more: Any) -> str:
    lines = more.pop("lines", [key.allowed().line])
    return passkeys.verify(plan, PasskeyAnswer.of(nonce, answer), lines, **({"origins": {PAGE}} | more)).by


def test_an_answer_to_this_text_counts_and_can_be_verified_again(key: Authenticator):
    answer = key.answer(challenge(PLAN, NONCE))
    assert verify(key, answer) == "ada"
    kept = PasskeyAnswer.of(NONCE, answer).text
    again = passkeys.verify(PLAN, PasskeyAnswer.read(kept), [key.allowed().line])
    assert (again.by, again.key.line) == ("ada", key.allowed().line)


@pytest.mark.parametrize(
    ("fault", "answer", "more"),
    [
        ("another question", {}, {"plan": PLAN + "x"}),
        ("another question", {}, {"nonce": b"m" * 32}),
        ("another origin", {"origin": "http://localhost:8001"}, {}),
        ("another origin", {"origin": "http://localhost.evil.example"}, {"origins": None}),
        ("another origin", {"origin": "https://hpc.example.org"}, {"origins": None}),
        ("another origin", {"embedded": True}, {}),
        ("no user verification", {"verified": False}, {}),
        ("counter", {}, {"count": 1}),
        ("signature", {"rp_id": "evil.example"}, {}),
        ("signature", {"kind": "webauthn.create"}, {}),
        ("unknown key", {}, {"lines": []}),
        ("unknown key", {}, {"lines": [Authenticator(b"another").allowed().line]}),
        ("signature", {}, {"lines": [Authenticator().allowed().line]}),
    ],
)
def test_any_other_is_refused_and_says_why(key: Authenticator, fault: str, answer: Any, more: Any):
    with pytest.raises(PasskeyRefused) as refused:
        verify(key, key.answer(challenge(PLAN, NONCE), **answer), **more)
    assert refused.value.fault == fault


def test_each_part_of_an_answer_is_signed(key: Authenticator):
    whole = PasskeyAnswer.of(NONCE, key.answer(challenge(PLAN, NONCE)))
    data = bytearray(passkeys.decoded(whole.authenticator_data))
    data[36] += 1
    for name, changed in (("authenticator_data", encoded(bytes(data))), ("signature", encoded(b"no signature"))):
        forged = PasskeyAnswer.read(json.dumps(json.loads(whole.text) | {name: changed}))
        with pytest.raises(PasskeyRefused) as refused:
            passkeys.verify(PLAN, forged, [key.allowed().line])
        assert refused.value.fault == "signature"


def test_a_key_that_never_counts_is_taken_and_one_that_stops_counting_is_not():
    silent = Authenticator(count=None)
    assert verify(silent, silent.answer(challenge(PLAN, NONCE))) == "ada"
    with pytest.raises(PasskeyRefused) as refused:
        verify(silent, silent.answer(challenge(PLAN, NONCE)), count=3)
    assert refused.value.fault == "counter"


@pytest.mark.parametrize("answer", [None, [], {}, {"rawId": "a", "response": []}, {"rawId": "=", "response": {}}, "x"])
def test_what_is_no_answer_is_refused(answer: Any):
    with pytest.raises(PasskeyRefused) as refused:
        PasskeyAnswer.of(NONCE, answer)
    assert refused.value.fault == "unreadable"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"nonce": 1}', "[" * 9000, '{"nonce": "a", "more": "b"}'])
def test_what_was_kept_and_cannot_be_read_is_no_yes(text: str):
    with pytest.raises(PasskeyRefused):
        PasskeyAnswer.read(text)


def test_bytes_that_are_no_answer_of_an_authenticator_are_refused(key: Authenticator):
    answer = key.answer(challenge(PLAN, NONCE))
    for name, part in (("clientDataJSON", b"[]"), ("clientDataJSON", b"\xff"), ("authenticatorData", b"short")):
        broken = answer | {"response": answer["response"] | {name: encoded(part)}}
        with pytest.raises(PasskeyRefused) as refused:
            verify(key, broken)
        assert refused.value.fault == "unreadable"


def test_a_new_key_counts_where_it_checked_who_is_there(key: Authenticator):
    made = b"c" * 32
    options = passkeys.offered("ada", "http://localhost", made, b"u" * 16)
    assert (options["rp"]["id"], options["authenticatorSelection"]["userVerification"]) == ("localhost", "required")
    whom = {"name": "ada", "origin": "http://localhost", "page": PAGE, "made": made}
    assert passkeys.made_key(key.made(made, PAGE), **whom) == key.allowed()
    for wrong in (
        key.made(b"d" * 32, PAGE),
        key.made(made, PAGE, verified=False),
        key.made(made, "http://localhost:1"),
    ):
        with pytest.raises(PasskeyRefused):
            passkeys.made_key(wrong, **whom)


@pytest.mark.parametrize("origin", ["http://localhost", "https://hpc.example.org", "https://hpc.example.org:8443"])
def test_a_line_is_read_as_it_is_written(key: Authenticator, origin: str):
    made = key.allowed(origin=origin)
    assert parse(made.line) == made
    assert made.rp_id == origin.split("/")[2].split(":", maxsplit=1)[0]


@pytest.mark.parametrize(
    "line",
    [
        "", "ada", "ada http://localhost a", "ada http://localhost a b c", "ada http://127.0.0.1 YQ YQ",
        "ada http://hpc.example.org YQ YQ", "ada https://127.0.0.1/x YQ YQ", "\xe4da http://localhost YQ YQ",
        "ada http://localhost ! YQ", "ada http://localhost YQ A",
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_refused(line: str):
    with pytest.raises(ValueError, match=r"is |may "):
        parse(line)


def test_without_the_extra_nothing_counts_and_it_says_how_to_install_it(key: Authenticator, monkeypatch):
    answer = key.answer(challenge(PLAN, NONCE))
    for name in [name for name in sys.modules if name.partition(".")[0] == "webauthn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "webauthn", None)
    with pytest.raises(AgentToolsError) as missing:
        verify(key, answer)
    assert missing.value.hint == "Install it: pip install 'slurm-agent-tools[passkey]'"
