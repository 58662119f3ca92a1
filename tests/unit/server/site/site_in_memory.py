"""A site's service on a real socket over the fake Slurm, whose controller asks for tickets as the plugin does."""

from __future__ import annotations

import re
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
from tests.unit.services.contexts import TestedToolbox
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.devcluster.fake.answering import Answer
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.models.arguments import SubmitJob
from slurm_agent_tools.models.submission_answer import SubmitReply
from slurm_agent_tools.policy.loading import Base, LoadedPolicy, load, shipped
from slurm_agent_tools.server.site.service import SiteService
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.user_records import RecordsByUser
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.ledger import Store
from slurm_agent_tools.transport.local import LocalFiles
from slurm_agent_tools.transport.site_socket import SiteClient
from slurm_agent_tools.transport.unix_peer import UnixUser

SCRIPT = "#!/bin/bash\n#SBATCH --job-name=train\n#SBATCH --partition=cpu\n#SBATCH --mem=200M\n#SBATCH --time=00:05:00\nsleep 5\n"
LONG = SCRIPT.replace("00:05:00", "13:00:00")
ALICE, BOB = UnixUser(1000, "alice"), UnixUser(2000, "bob")
REFUSED = (
    "sbatch: error: needs a ticket; ask through slurm-agent-tools connect\nsbatch: error: Batch job submission failed"
)


class TicketedSlurm(FakeSlurm):
    """Lets no job in without a ticket, spends it, and takes it out of the comment.

    `noted`: the jobs in whose AdminComment a ticket stands.
    """

    tickets: Path

    def __init__(self) -> None:
        super().__init__()
        self.noted: dict[str, int] = {}

    def _command(self, argv: Sequence[str], stdin: bytes, cwd: str, user: str, *, admin: bool = False) -> Answer:
        if "--Format=ArrayJobID:20,admin_comment:33" in argv:
            return Answer("".join(f"{job:<20}{nonce}:\n" for nonce, job in self.noted.items()), "", 0)
        if argv[0] == "sbatch":
            words = list(argv)
            at = next((i for i, word in enumerate(words) if word.startswith("--comment=")), None)
            found = None if at is None else re.search(r" ticket=([0-9a-f]{32})$", words[at])
            if found is None or at is None:
                return Answer("", REFUSED, 1)
            ticket = self.tickets / found[1]
            if not ticket.exists() or not ticket.read_bytes().endswith(stdin):
                return Answer("", REFUSED.replace("needs a ticket", "is used already"), 1)
            ticket.rename(self.tickets / "used" / found[1])
            words[at] = words[at][: found.start()]
            answer = super()._command(words, stdin, cwd, user, admin=admin)
            if answer.code == 0:
                self.noted[found[1]] = int(answer.out)
            return answer
        return super()._command(argv, stdin, cwd, user, admin=admin)


@dataclass
class Site:
    """The service, what a user has beside it, and who calls next."""

    config: SiteConfig
    service: SiteService
    users: RecordsByUser
    slurm: TicketedSlurm
    tools: TestedToolbox
    who: UnixUser = ALICE

    @property
    def project(self) -> Path:
        return Path(self.tools.context.project)

    def client(self) -> SiteClient:
        return SiteClient(str(self.config.socket), str(self.project), LocalFiles())

    async def submit(self, **asked: object) -> SubmitReply:
        reply = await self.tools.call("submit_job", SubmitJob(**{"script": "job.sh", **asked}))  # type: ignore[arg-type]
        assert isinstance(reply, SubmitReply)
        return reply

    def ledger(self, user: UnixUser = ALICE) -> Store:
        return self.users._users[user.uid].store

    def open_tickets(self) -> list[Path]:
        return [path for path in self.config.tickets.iterdir() if path.is_file()]

    def spent_tickets(self) -> list[Path]:
        return list(self.config.used.iterdir())


def policy(text: str = "version: '2026.1'\n") -> LoadedPolicy:
    return load(shipped(), base=Base("site", "/etc/slurm-agent-tools/policy.yaml", text.encode()))


@asynccontextmanager
async def site(folder: Path, *, text: str = "", **said: object) -> AsyncIterator[Site]:
    """A site whose controller lets nobody in without a ticket. `text`: what its policy says."""
    with tempfile.TemporaryDirectory(prefix="sat-") as short:  # a socket's name may have 100 letters
        config = SiteConfig(
            socket=Path(short, "s"), state=folder / "site", tickets=folder / "tickets", policy=folder / "policy.yaml", **said,  # type: ignore[arg-type]
        )  # fmt: skip
        config.used.mkdir(parents=True)
        slurm = TicketedSlurm()
        slurm.tickets = config.tickets
        loaded = policy(text)
        users = RecordsByUser(config, runner=slurm, clock=slurm.clock, policy=lambda: loaded)
        tools = fake_toolbox(folder, slurm)
        made = Site(config, SiteService(config, users), users, slurm, tools)
        made.service = SiteService(config, users, peer=lambda _: made.who)
        context = replace(tools.context, site=made.client())
        tools.context = context
        tools.registry.context = context  # type: ignore[attr-defined]
        (made.project / "job.sh").write_text(SCRIPT)
        async with serving(made):
            yield made
        users.close()
        tools.context.store.close()


@asynccontextmanager
async def serving(made: Site) -> AsyncIterator[None]:
    listener = await anyio.create_unix_listener(made.config.socket, mode=0o600)
    async with listener, anyio.create_task_group() as group:
        group.start_soon(listener.serve, made.service.handle)
        yield
        group.cancel_scope.cancel()


def context_of(made: Site) -> ClusterContext:
    return made.tools.context
