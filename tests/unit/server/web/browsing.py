"""The dashboard over a Slurm in memory, as a browser meets it, but without scripts."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import httpx2
from tests.unit.services.contexts import TestedToolbox
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.server.http.host_check import allowed_hosts
from slurm_agent_tools.server.web.dashboard_app import Dashboard
from slurm_agent_tools.server.web.visitors import Visitors
from slurm_agent_tools.settings import HttpSettings
from slurm_agent_tools.store.tokens import Tokens


class Seen(HTMLParser):
    """What a page consists of: `tags` with their attributes, `text` without markup."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def ids(self) -> list[str]:
        return [attributes["id"] for _, attributes in self.tags if attributes.get("id")]


@dataclass
class Browser:
    """One who looks; `place` is where a link led."""

    app: Dashboard
    box: TestedToolbox
    tokens: Tokens
    cookie: str = ""
    place: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    async def ask(self, path: str, method: str = "GET", **more: Any) -> httpx2.Response:
        headers = {"host": "127.0.0.1:80"} | ({"cookie": self.cookie} if self.cookie else {}) | self.headers
        headers |= more.pop("headers", {})
        transport = httpx2.ASGITransport(self.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, headers=headers, **more)

    async def enter(self, key: str | None = None) -> httpx2.Response:
        """Open the link, and keep the cookie."""
        answer = await self.ask(f"/open/{key or self.app.visitors.link()}")
        self.keep(answer)
        return answer

    def keep(self, answer: httpx2.Response) -> None:
        pair, *rest = [part.strip() for part in answer.headers["set-cookie"].split(";")]
        self.cookie = pair
        self.place = next(part.partition("=")[2] for part in rest if part.startswith("Path="))

    async def see(self, page: str) -> Seen:
        answer = await self.ask(self.place + page)
        assert answer.status_code == 200, answer.text
        return Seen(answer.text)


def browser(folder: Path, slurm: FakeSlurm, **http: Any) -> Browser:
    return looking(fake_toolbox(folder, slurm), **http)


def looking(box: TestedToolbox, **http: Any) -> Browser:
    """A browser before pages over these tools."""
    tokens = Tokens(box.context.settings.state_dir)
    hosts = allowed_hosts([], [])
    app = Dashboard.of(box.registry, Visitors(tokens), hosts, HttpSettings(**http))
    return Browser(app, box, tokens)
