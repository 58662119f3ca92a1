"""A yes on a page: by a passkey, for exactly what is shown, once; each other answer is refused and noted down."""

from __future__ import annotations

import base64
import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.unit.authenticators import Authenticator
from tests.unit.server.web.browsing import Browser, looking
from tests.unit.services.scenes import NEEDS_A_PERSON, Scene
from tests.unit.services.test_persons_yes import under_a_site

from slurm_agent_tools.policy.loading import load, shipped
from slurm_agent_tools.server.web.passkey_questions import LASTS, PasskeyQuestions
from slurm_agent_tools.store import enrolled_passkeys

pytestmark = pytest.mark.proves("passkey-is-once-and-exact")
PAGE = "http://localhost:8000"


class Person:
    """One at a browser with a passkey, before a question of `scene`."""

    def __init__(self, scene: Scene, key: Authenticator) -> None:
        self.scene, self.key = scene, key
        self.seen: Browser = looking(scene.box)
        self.seconds = 0.0
        self.seen.app = replace(self.seen.app, questions=PasskeyQuestions(lambda: self.seconds))

    async def opens(self) -> str:
        """Ask for a job that needs a person, and open its page; returns what the page says that it shows."""
        reply = await self.scene.submit()
        self.name = reply.approval_id
        await self.seen.enter()
        return await self.shown()

    async def shown(self) -> str:
        page = await self.seen.see(f"approve/{self.name}")
        (button,) = [attributes for tag, attributes in page.tags if tag == "button"]
        return str(button["data-shown"])

    async def send(self, step: str, body: Any, path: str = "", **headers: str) -> httpx2.Response:
        place = f"{self.seen.place}yes/{step}/{self.name}"
        said = {"origin": PAGE, "host": "localhost:8000", "content-type": "application/json"} | headers
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.seen.ask(f"{PAGE}{path or place}", "POST", content=content, headers=said)

    async def begins(self, shown: str | None = None) -> dict[str, Any]:
        answer = await self.send("begin", {"shown": shown or await self.shown()})
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def says_yes(self, begun: dict[str, Any] | None = None, **answer: Any) -> httpx2.Response:
        begun = begun or await self.begins()
        made = self.key.answer(challenge_of(begun), **answer)
        return await self.send("finish", {"number": begun["number"], "answer": made})

    def faults(self) -> list[str]:
        return [line["fault"] for line in self.scene.lines("yes_refused")]


def challenge_of(begun: dict[str, Any]) -> bytes:
    text = begun["options"]["challenge"]
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@pytest.fixture
def person(tmp_path: Path, monkeypatch) -> Person:
    """A key that was enrolled on a terminal, and a script that needs a person."""
    scene = Scene(tmp_path)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    key = Authenticator()
    enrolled_passkeys.enrol(key.allowed())
    scene.write("train.sh", NEEDS_A_PERSON)
    return Person(scene, key)


async def test_a_yes_on_the_page_submits_nothing_and_is_used_once(person: Person):
    await person.opens()
    page = await person.seen.see(f"approve/{person.name}")
    (item,) = person.scene.context.store.approvals.open(person.scene.context.owner)
    assert item.plan in page.text
    answer = await person.says_yes()
    assert answer.status_code == 200, answer.text
    assert answer.json()["message"].startswith("Approved with the passkey of ada.")
    assert person.scene.sent() == []
    (line,) = person.scene.lines("approved")
    assert (line["by"], line["channel"], line["plan"], line["face"]) == ("ada", "passkey", item.plan_sha256, "page")

    first = await person.scene.submit()
    assert (first.status, first.decision.approval.channel, first.decision.approval.by) == (
        "submitted",
        "passkey",
        "ada",
    )
    await person.scene.wait(first.job_id)
    await person.scene.cancel(first.job_id)
    assert (await person.scene.submit()).status == "blocked"


async def test_a_yes_is_for_that_plan_alone(person: Person):
    await person.opens()
    assert (await person.says_yes()).status_code == 200
    person.scene.write("train.sh", NEEDS_A_PERSON + "sleep 1\n")
    reply = await person.scene.submit()
    assert reply.status == "blocked"
    assert f"The yes {person.name} (passkey) does not count for this: " in reply.reason
    assert reply.reason.endswith("the script differs from line 6 on.")


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        ("no user verification", {"verified": False}),
        ("another origin", {"origin": "http://localhost:9999"}),
        ("another origin", {"embedded": True}),
        ("signature", {"rp_id": "evil.example"}),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_noted_down(person: Person, fault: str, answer: Any):
    await person.opens()
    refused = await person.says_yes(**answer)
    assert (refused.status_code, person.faults()) == (403, [fault])
    assert (await person.scene.submit()).status == "blocked"
    assert (await person.says_yes()).status_code == 200  # a new question, answered well


async def test_a_key_that_nobody_enrolled_says_nothing(person: Person):
    await person.opens()
    person.key = Authenticator(b"somebody")
    assert ((await person.says_yes()).status_code, person.faults()) == (403, ["unknown key"])


async def test_an_answer_counts_once_soon_and_where_it_was_asked(person: Person):
    await person.opens()
    begun = await person.begins()
    made = {"number": begun["number"], "answer": person.key.answer(challenge_of(begun), verified=False)}
    assert (await person.send("finish", made)).status_code == 403
    assert (await person.send("finish", made)).status_code == 403
    other = await person.begins()
    old = {"number": other["number"], "answer": made["answer"]}
    assert (await person.send("finish", old)).status_code == 403
    late = await person.begins()
    person.seconds = LASTS + 1
    assert (await person.says_yes(late)).status_code == 403
    again = await person.begins()
    await person.seen.enter()
    assert (await person.says_yes(again)).status_code == 403
    expected = ["no user verification", "replayed", "another question", "replayed", "replayed"]
    assert person.faults() == expected
    assert (await person.scene.submit()).status == "blocked"


async def test_a_plan_that_changes_while_it_is_read_gets_no_yes(person: Person):
    shown = await person.opens()
    assert (await person.send("begin", {"shown": "0" * 64})).status_code == 403
    begun = await person.begins(shown)
    person.scene.write("train.sh", NEEDS_A_PERSON + "rm -rf data\n")
    refused = await person.says_yes(begun)
    assert refused.status_code == 403
    assert "the script differs from line 6 on" in refused.json()["message"]
    person.scene.write("train.sh", NEEDS_A_PERSON)
    begun = await person.begins(shown)
    with closing(sqlite3.connect(person.scene.context.store.path, timeout=10)) as db, db:
        db.execute("UPDATE approvals SET plan = plan || 'x'")
    assert (await person.says_yes(begun)).status_code == 403
    assert person.faults() == ["another plan"] * 3


async def test_a_copy_of_a_key_is_told_by_its_counter(person: Person):
    await person.opens()
    assert (await person.says_yes()).status_code == 200
    first = await person.scene.submit()
    await person.scene.wait(first.job_id)
    await person.scene.cancel(first.job_id)
    person.name = (await person.scene.submit(idempotency_key="again")).approval_id
    person.key.count = 0
    assert ((await person.says_yes()).status_code, person.faults()) == (403, ["counter"])


async def test_what_a_browser_could_not_do_is_noted_down(person: Person):
    await person.opens()
    begun = await person.begins()
    refused = await person.send("finish", {"number": begun["number"], "failed": "NotAllowedError\x1b"})
    assert (refused.status_code, person.faults()) == (403, ["no answer"])
    assert "NotAllowedError\\x1b" in refused.json()["message"]


async def test_a_token_of_the_pages_says_no_yes(person: Person):
    """An agent that has it sees the question, can ask for a challenge, and has no passkey."""
    await person.opens()
    token = person.seen.tokens.new("agent", "write", None)
    bare = {"authorization": f"Bearer {token}", "cookie": "none=1"}
    answer = await person.send("begin", {"shown": await person.shown()}, path=f"/yes/begin/{person.name}", **bare)
    assert answer.status_code in {403, 404, 405}
    begun = await person.begins()
    for made in ({}, {"answer": {}}, {"answer": "yes"}, {"answer": {"rawId": "a", "response": {}}}):
        sent = {"number": begun["number"]} | made
        assert (await person.send("finish", sent)).status_code == 403
    assert (await person.scene.submit()).status == "blocked"
    assert person.scene.lines("approved") == []


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"{", {}, 400), (b"[]", {}, 400), (b'{"shown": "a", "shown": "b"}', {}, 400), (b"x" * 20_000, {}, 413),
        (b"{}", {"content-type": "text/plain"}, 415), (b"{}", {"sec-fetch-site": "cross-site"}, 403),
        (b"{}", {"origin": "https://evil.example"}, 403), (b"{}", {"origin": "http://localhost:9999"}, 403),
        (b"{}", {"cookie": "sat_visit=x"}, 401),
    ],
)  # fmt: skip
async def test_what_is_not_sent_by_our_page_is_turned_away(person: Person, body: bytes, headers: Any, status: int):
    await person.opens()
    assert (await person.send("begin", body, **headers)).status_code == status


async def test_a_page_by_a_name_that_is_no_origin_of_ours_asks_no_passkey(person: Person):
    shown = await person.opens()
    host = {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}
    assert (await person.send("begin", {"shown": shown}, **host)).status_code == 403
    assert person.faults() == ["another origin"]


async def test_where_the_policy_does_not_list_it_no_passkey_counts(person: Person):
    await person.opens()
    begun = await person.begins()
    person.scene.policy(approval_channels=("terminal", "signed"))
    assert ((await person.says_yes(begun)).status_code, person.faults()) == (403, ["not counted"])
    person.scene.slurm.clock.move(3)
    page = await person.seen.see(f"approve/{person.name}")
    assert "the policy does not count passkeys" in page.text


async def test_without_an_enrolled_key_the_page_says_how_to_enrol_one(person: Person):
    await person.opens()
    assert enrolled_passkeys.strike("ada") == 1
    person.scene.slurm.clock.move(3)
    page = await person.seen.see(f"approve/{person.name}")
    assert "slurm-agent-tools passkey add NAME" in page.text
    assert (await person.send("begin", {"shown": "x"})).status_code == 403


async def test_a_yes_by_a_key_that_was_struck_off_since_does_not_count(person: Person):
    await person.opens()
    assert (await person.says_yes()).status_code == 200
    enrolled_passkeys.strike("ada")
    assert (await person.scene.submit()).status == "blocked"


@pytest.mark.proves("site-counts-signatures")
async def test_under_a_sites_policy_the_users_own_keys_do_not_count(person: Person):
    """A shell of the user enrols its own key, writes its answer into the ledger, and gets no yes."""
    theirs = Authenticator(b"key-of-the-site")
    line = theirs.allowed("grace@hpc").line
    under_a_site(person.scene, f"allowed_passkeys: ['{line}']\n")
    await person.opens()
    assert ((await person.says_yes()).status_code, person.faults()) == (403, ["unknown key"])

    (item,) = person.scene.context.store.approvals.open(person.scene.context.owner)
    mine = replace(person.scene.context, policy=load(shipped()))
    person.scene.box.context = person.scene.box.registry.context = mine
    assert (await person.says_yes()).status_code == 200
    under_a_site(person.scene, f"allowed_passkeys: ['{line}']\n")
    assert (await person.scene.submit()).status == "blocked"

    with closing(sqlite3.connect(person.scene.context.store.path, timeout=10)) as db, db:
        db.execute("UPDATE approvals SET granted = NULL, channel = NULL, signature = NULL WHERE id = ?", (item.id,))
    person.key = theirs
    assert (await person.says_yes()).status_code == 200
    reply = await person.scene.submit()
    approved = reply.decision.approval
    assert (reply.status, approved.by, approved.worth) == ("submitted", "grace@hpc", "a passkey that the site lists")


async def test_without_the_extra_the_page_says_how_to_install_it(person: Person, monkeypatch):
    await person.opens()
    for name in [name for name in sys.modules if name.partition(".")[0] == "webauthn"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "webauthn", None)
    person.scene.slurm.clock.move(3)
    page = await person.seen.see(f"approve/{person.name}")
    assert "Passkeys need the extra passkey, which is not installed" in page.text
    assert ((await person.send("begin", {"shown": "x"})).status_code, person.faults()) == (403, ["not counted"])
