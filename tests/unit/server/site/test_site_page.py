"""A question's page at the site's service: only a passkey of the site's list, made for that origin, says yes there."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import httpx2
import pytest
from tests.unit.authenticators import Authenticator
from tests.unit.server.site.site_in_memory import BOB, LONG, Site, site
from tests.unit.server.web.test_passkey_yes import challenge_of

from slurm_agent_tools.errors import ConfigError, InputError
from slurm_agent_tools.models import allowed_passkeys
from slurm_agent_tools.models.allowed_passkeys import LOOPBACK
from slurm_agent_tools.models.arguments import GetStatus
from slurm_agent_tools.server.site import service, site_config, site_page
from slurm_agent_tools.server.site.site_page import SitePage

pytestmark = pytest.mark.proves("passkey-at-the-site")
ORIGIN = "https://approve.example.org"
RP_ID = "approve.example.org"


class Person:
    """One at a browser before the service's page of a question."""

    def __init__(self, made: Site, key: Authenticator, page: SitePage) -> None:
        self.made, self.key, self.page = made, key, page
        self.browser = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=page), base_url=ORIGIN)
        self.name = self.link = ""

    async def asked(self) -> None:
        """A job that needs a person, and the link to its question."""
        (self.made.project / "job.sh").write_text(LONG)
        await self.made.tools.call("get_status", GetStatus())
        self.name = str((await self.made.submit()).approval_id)
        self.link = (await self.made.client().ask("question", {"id": self.name}))["page"]

    async def send(self, step: str, body: Any, origin: str = ORIGIN, name: str = "") -> httpx2.Response:
        headers = {"origin": origin, "content-type": "application/json"}
        where = f"{self.link}yes/{step}/{name or self.name}"
        return await self.browser.post(where, content=json.dumps(body), headers=headers)

    async def begins(self) -> dict[str, Any]:
        shown = re.search(r'data-shown="(\w+)"', (await self.browser.get(self.link)).text)
        assert shown is not None
        begun = await self.send("begin", {"shown": shown[1]})
        assert begun.status_code == 200, begun.text
        return begun.json()

    async def says_yes(self, begun: dict[str, Any] | None = None, **answer: Any) -> int:
        begun = begun or await self.begins()
        made = self.key.answer(challenge_of(begun), **({"origin": ORIGIN, "rp_id": RP_ID} | answer))
        return (await self.send("finish", {"number": begun["number"], "answer": made})).status_code

    def faults(self) -> list[str]:
        found = map(json.loads, self.made.ledger().decisions.read_text().splitlines())
        return [line["fault"] for line in found if line["event"] == "yes_refused"]


@asynccontextmanager
async def person(folder: Path, origin: str = ORIGIN, **said: Any) -> AsyncIterator[Person]:
    """Before the page of a site that lists ada's passkey, which was made for `origin`."""
    key = Authenticator()
    policy = (
        'limits: {time_limit: {free: "12:00:00", justify: "12:00:00"}}\n'
        f"approval_channels: [passkey]\nallowed_passkeys: ['{key.allowed(origin=origin).line}']\n"
    )
    async with site(folder, text=policy, **said) as made:
        page = made.service._page = SitePage(ORIGIN, made.users, made.config)
        someone = Person(made, key, page)
        async with someone.browser:
            yield someone


async def test_a_yes_on_the_services_page_is_used_once(tmp_path: Path):
    async with person(tmp_path) as ada:
        await ada.asked()
        page = (await ada.browser.get(ada.link)).text
        assert "#SBATCH --time=13:00:00" in page
        assert await ada.says_yes() == 200
        assert "page" not in await ada.made.client().ask("question", {"id": ada.name})
        sent = await ada.made.submit()
        assert sent.decision is not None
        assert (sent.status, sent.decision.approval and sent.decision.approval.by) == ("submitted", "ada")
        assert (await ada.made.submit(idempotency_key="another")).blocker == "approval"


@pytest.mark.parametrize(
    ("fault", "answer"),
    [
        ("no user verification", {"verified": False}),
        ("another origin", {"origin": "https://shell.approve.example.org"}),
        ("another origin", {"origin": f"{ORIGIN}:8443"}),
        ("another origin", {"origin": "http://localhost:8000"}),
        ("another origin", {"embedded": True}),
        ("signature", {"rp_id": "example.org"}),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_noted_down(tmp_path: Path, fault: str, answer: Any):
    async with person(tmp_path) as ada:
        await ada.asked()
        assert (await ada.says_yes(**answer), ada.faults()) == (403, [fault])
        assert (await ada.made.submit()).status == "blocked"


async def test_an_answer_counts_once_and_for_its_question_alone(tmp_path: Path):
    async with person(tmp_path) as ada:
        await ada.asked()
        first, second = await ada.begins(), await ada.begins()
        made = ada.key.answer(challenge_of(first), ORIGIN, RP_ID)
        sent = {"number": second["number"], "answer": made}
        assert (await ada.send("finish", sent)).status_code == 403
        assert (await ada.send("finish", sent)).status_code == 403
        assert (await ada.send("finish", {"number": first["number"], "answer": made}, name="0")).status_code == 404
        assert (await ada.send("begin", {"shown": "0" * 64})).status_code == 403
        assert (await ada.send("begin", {"shown": "x"}, "https://shell.approve.example.org")).status_code == 403
        assert ada.faults() == ["another question", "replayed", "another plan", "another origin"]


async def test_a_yes_to_a_plan_that_is_not_what_would_run_lets_nothing_in(tmp_path: Path):
    """The service reads no file while the page is open: it compares when the yes is used."""
    async with person(tmp_path) as ada:
        await ada.asked()
        (ada.made.project / "job.sh").write_text(LONG + "rm -rf data\n")
        assert await ada.says_yes() == 200
        assert (await ada.made.submit()).status == "blocked"


async def test_a_passkey_of_localhost_says_nothing_there(tmp_path: Path):
    """Every user of a machine can show pages at localhost."""
    async with person(tmp_path, LOOPBACK) as ada:
        await ada.asked()
        page = (await ada.browser.get(ada.link)).text
        assert f"{ORIGIN}/enrol/NAME" in page
        assert 'id="yes"' not in page
        assert (await ada.send("begin", {"shown": "x"})).status_code == 403
        assert ada.faults() == ["unknown key"]


async def test_no_passkeys_answer_counts_over_the_users_socket(tmp_path: Path):
    """Who asks the passkey there, and what it shows, nobody knows."""
    async with person(tmp_path) as ada:
        await ada.asked()
        begun = await ada.begins()
        proof = json.dumps(ada.key.answer(challenge_of(begun), ORIGIN, RP_ID))
        with pytest.raises(InputError, match="does not count here"):
            await ada.made.client().ask("answer", {"id": ada.name, "channel": "passkey", "proof": proof})
        assert (await ada.made.submit()).status == "blocked"


async def test_a_copy_of_a_key_is_told_whoevers_question_it_answers(tmp_path: Path):
    async with person(tmp_path) as ada:
        await ada.asked()
        assert await ada.says_yes() == 200
        ada.made.who, ada.key.count = BOB, 0
        (ada.made.project / "job.sh").write_text(LONG)
        words = {"arguments": {"script": "job.sh"}, "caller": ["t", "1", "cli"], "analysed": [],
                 "status_read": ada.made.slurm.clock.now().isoformat()}  # fmt: skip
        ada.name = (await ada.made.client().ask("judge", words))["question"]
        ada.link = (await ada.made.client().ask("question", {"id": ada.name}))["page"]
        assert await ada.says_yes() == 403


async def test_a_link_is_one_questions_and_hard_to_guess(tmp_path: Path):
    async with person(tmp_path) as ada:
        await ada.asked()
        listed = (await ada.made.client().ask("questions", {}))["questions"]
        assert [one["page"] for one in listed] == [ada.link]
        secret = ada.link.split("/")[-2]
        for path in (
            f"/q/2000/{secret}/",
            "/q/1000/x/",
            "/q/1000//",
            "/q/",
            "/",
            "/enrol/",
            "/enrol/<b>",
            "/static/../x",
        ):
            assert (await ada.browser.get(path)).status_code == 404, path
        answer = await ada.browser.get(ada.link)
        assert answer.headers["content-security-policy"].endswith("frame-ancestors 'none'")
        assert "set-cookie" not in answer.headers
        assert (await ada.browser.put(ada.link)).status_code == 405
        for number in range(20):
            ada.page.link(ada.made.who, "/elsewhere", str(number))
        assert (await ada.browser.get(ada.link)).status_code == 404
        assert (await ada.browser.get("/static/passkey.js")).status_code == 200


# --- A flood of requests ----------------------------------------------------------------------------------------------


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is over a limit is refused without being kept waiting."""
    monkeypatch.setattr(site_page, "_SLOWLY", 0.0)


@pytest.mark.usefixtures("at_once")
async def test_the_requests_of_a_users_links_are_bounded_and_no_other_users(tmp_path: Path):
    async with person(tmp_path, calls_per_minute=10) as ada:
        await ada.asked()
        first = ada.link
        told = [(await ada.browser.get(path)).status_code for path in [first, f"{first}static/passkey.js"] * 6]
        assert told == [200] * 10 + [429] * 2
        another = ada.page.link(ada.made.who, "/elsewhere", "1").removeprefix(ORIGIN)
        assert (await ada.browser.get(another)).status_code == 429
        theirs = ada.page.link(BOB, "/elsewhere", "1").removeprefix(ORIGIN)
        assert (await ada.browser.get(f"{theirs}static/passkey.js")).status_code == 200
        assert ada.page.refused() == {"with_a_link": {"uid 1000, calls_per_minute": 3}}
        ada.made.slurm.clock.move(60)
        assert await ada.says_yes() == 200


@pytest.mark.usefixtures("at_once")
async def test_who_has_no_link_is_bounded_and_keeps_nobody_from_a_yes(tmp_path: Path):
    async with person(tmp_path, calls_per_minute=10) as ada:
        await ada.asked()
        paths = ["/", "/q/1000/x/", "/enrol/ada", "/static/passkey.js", "/favicon.ico"]
        told = [(await ada.browser.get(path)).status_code for path in paths * 3]
        assert told == [404, 404, 200, 200, 404] * 2 + [429] * 5
        assert (await ada.browser.put("/")).status_code == 429
        page = (await ada.browser.get(ada.link)).text
        for file in re.findall(r'(?:src|href)="([^"]+)"', page):
            assert (await ada.browser.get(ada.link + file)).status_code == 200, file
        assert await ada.says_yes() == 200
        assert ada.page.refused() == {"without": {"uid -1, calls_per_minute": 6}}
        assert ada.page.refused() == {}


@pytest.mark.usefixtures("at_once")
async def test_so_many_requests_of_a_users_links_are_answered_at_once(tmp_path: Path):
    """A request that does not come to its end holds its place until it is late."""
    async with person(tmp_path) as ada:
        await ada.asked()
        come = anyio.Event()

        async def slowly() -> AsyncIterator[bytes]:
            yield b"{"
            await come.wait()
            yield b"}"

        async def hold() -> None:
            headers = {"origin": ORIGIN, "content-type": "application/json"}
            await ada.browser.post(f"{ada.link}yes/begin/{ada.name}", content=slowly(), headers=headers)

        theirs = ada.page.link(BOB, "/elsewhere", "1").removeprefix(ORIGIN)
        async with anyio.create_task_group() as group:
            for _ in range(7):
                group.start_soon(hold)
            with anyio.fail_after(30):
                while ada.page._linked.at_once() < 7:
                    await anyio.lowlevel.checkpoint()
            assert (await ada.browser.get(ada.link)).status_code == 429
            assert (await ada.browser.get(f"{theirs}static/passkey.js")).status_code == 200
            come.set()
        assert (await ada.browser.get(ada.link)).status_code == 200


async def test_whose_folder_is_full_has_no_more_lines_written_by_answers(tmp_path: Path):
    async with person(tmp_path, state_mebibytes=16) as ada:
        await ada.asked()
        log = ada.made.ledger().decisions
        os.truncate(log, 17 * 2**20)
        sent = await ada.send("begin", {"shown": "0" * 64})
        assert (sent.status_code, "state_mebibytes" in sent.json()["message"]) == (503, True)
        assert log.stat().st_size == 17 * 2**20


@pytest.mark.usefixtures("at_once")
async def test_refusals_of_the_page_are_one_line_in_the_services_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    lines: list[tuple[str, dict[str, Any]]] = []
    told = anyio.Event()

    def note(what: str, **facts: Any) -> None:
        lines.append((what, facts))
        told.set()

    monkeypatch.setattr(service._log, "warning", note)
    monkeypatch.setattr(service, "_SWEEP", 0.01)
    async with person(tmp_path, calls_per_minute=10) as ada:
        for _ in range(12):
            await ada.browser.get("/")
        async with anyio.create_task_group() as group:
            group.start_soon(ada.made.service.sweep)
            with anyio.fail_after(30):
                await told.wait()
            group.cancel_scope.cancel()
    assert lines == [("requests to the page were refused by a limit", {"without": {"uid -1, calls_per_minute": 2}})]


async def test_a_new_passkey_is_a_line_for_the_administrator(tmp_path: Path):
    async with person(tmp_path) as ada:
        ada.link = f"{ORIGIN}/enrol/grace@hpc/"
        assert "grace@hpc" in (await ada.browser.get(ada.link.rstrip("/"))).text
        new = Authenticator(b"another")
        begun = (await ada.send("begin", {}, name="new")).json()
        sent = {"number": begun["number"], "answer": new.made(challenge_of(begun), ORIGIN, RP_ID)}
        told = (await ada.send("finish", sent, name="new")).json()["message"]
        assert told.endswith(new.allowed("grace@hpc", ORIGIN).line)
        assert (await ada.send("finish", sent, name="new")).status_code == 403
        begun = (await ada.send("begin", {}, name="new")).json()
        assert (await ada.send("finish", {"number": begun["number"], "failed": "x"}, name="new")).status_code == 403


async def test_the_page_answers_on_its_own_socket_and_ends_with_the_service(tmp_path: Path):
    async with person(tmp_path, page_origin=ORIGIN) as ada:
        await ada.asked()
        listener = await service.listen(ada.made.config, page=True)
        raw = listener.extra(anyio.abc.SocketAttribute.raw_socket)  # noqa: S610 - as in the service
        transport = httpx2.AsyncHTTPTransport(uds=str(ada.made.config.page_socket))
        async with listener, anyio.create_task_group() as group, httpx2.AsyncClient(transport=transport) as browser:
            group.start_soon(ada.page.serve, raw)
            answer = await browser.get(ada.link.replace("https", "http"))
            assert "All that would run" in answer.text
            silent = [await anyio.connect_unix(ada.made.config.page_socket) for _ in range(100)]
            answer = await browser.get(ada.link.replace("https", "http"))
            assert "All that would run" in answer.text
            for one in silent:
                await one.aclose()
            await browser.get("http://approve.example.org/")
            assert ada.page._others._calls == {os.getuid(): 1}
            await ada.page.end()


@pytest.mark.parametrize(
    "origin", [LOOPBACK, "http://hpc.example.org", "https://hpc.example.org/", "hpc.example.org", ""]
)
def test_a_page_without_a_name_of_the_sites_own_is_refused(origin: str):
    with pytest.raises(ConfigError, match="page_origin"):
        site_config.parse({"page_origin": origin})


def test_keys_of_other_origins_count_at_no_page_of_the_service():
    lines = [Authenticator().allowed(name, origin).line for name, origin in (("ada", ORIGIN), ("eve", LOOPBACK))]
    assert site_page.keys_for(ORIGIN, lines) == ["ada"]
    assert site_page.keys_for(None, lines) == []
    assert allowed_passkeys.parse(lines[0]).counts_at(ORIGIN)
