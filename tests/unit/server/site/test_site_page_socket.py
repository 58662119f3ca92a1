"""The socket of the site's page: for the web server's group alone where one is named, and one caller's part for each."""

from __future__ import annotations

import grp
import os
from pathlib import Path

import pytest
from tests.unit.server.site.site_in_memory import site

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.site import service, site_page
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.site_layout import by_hand, socket_unit
from slurm_agent_tools.server.site.site_page import SitePage

ORIGIN = "https://approve.example.org"
PLACE = Path("/etc/slurm-agent-tools/site.toml")


def rights(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_gid, found.st_mode & 0o777


# --- whose it is ------------------------------------------------------------------------------------------------------


def test_the_unit_gives_the_page_to_the_group_alone_and_the_other_socket_to_everybody():
    """One unit has one SocketMode: the page never has more, and the users' socket is opened behind it."""
    closed = socket_unit(SiteConfig(page_origin=ORIGIN, page_group="www-data")).splitlines()
    assert {"SocketMode=0660", "SocketGroup=www-data"} <= {*closed}
    assert "ExecStartPost=/bin/chmod 0666 /run/slurm-agent-tools/site.sock" in closed
    assert "SocketMode=0666" not in closed


@pytest.mark.parametrize("said", [{}, {"page_origin": ORIGIN}, {"page_group": "www-data"}])
def test_a_unit_without_a_page_or_without_its_group_is_open_to_everybody(said: dict[str, str]):
    unit = socket_unit(SiteConfig.model_validate(said))
    assert "SocketMode=0666" in unit
    assert not any(word in unit for word in ("SocketGroup", "ExecStartPost"))


def test_started_by_hand_it_runs_as_a_member_of_that_group_and_of_no_other():
    closed = by_hand(SiteConfig(page_origin=ORIGIN, page_group="www-data"), PLACE)
    assert (" --groups=www-data " in closed, "--clear-groups" in closed) == (True, False)
    assert " --clear-groups " in by_hand(SiteConfig(page_group="www-data"), PLACE)


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file to another group")
async def test_the_group_alone_may_call_the_page_and_everybody_the_service(tmp_path: Path):
    group = grp.getgrnam("daemon")
    config = SiteConfig(socket=tmp_path / "s", page_origin=ORIGIN, page_group=group.gr_name)
    async with await service.listen(config), await service.listen(config, page=True):
        assert rights(config.page_socket) == (group.gr_gid, 0o660)
        assert rights(config.socket)[1] == 0o666


async def test_without_a_group_everybody_may_call_the_page(tmp_path: Path):
    config = SiteConfig(socket=tmp_path / "s", page_origin=ORIGIN)
    async with await service.listen(config, page=True):
        assert rights(config.page_socket)[1] == 0o666


@pytest.mark.parametrize(
    ("group", "said", "mend"),
    [("no-such-group", "is no group of this machine", "www-data"), ("daemon", "is a member", "site install")],
)
async def test_a_group_that_cannot_have_it_is_told_and_nobody_may_call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, group: str, said: str, mend: str
):
    def chown(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "chown", chown)
    config = SiteConfig(socket=tmp_path / "s", page_origin=ORIGIN, page_group=group)
    with pytest.raises(ConfigError, match=said) as caught:
        await service.listen(config, page=True)
    assert (caught.value.field, caught.value.value, mend in caught.value.hint) == ("page_group", group, True)
    assert rights(config.page_socket)[1] == 0o600


# --- what one caller has of it ----------------------------------------------------------------------------------------


async def test_who_asks_for_many_new_passkeys_throws_out_their_own(tmp_path: Path):
    async with site(tmp_path) as made:
        page = SitePage(ORIGIN, made.users, made.config)
        mine = (await page._offered(33, "grace", {}))["number"]
        for _ in range(600):
            await page._offered(1000, "eve", {})
        callers = [caller for *_, caller in page._new.values()]
        assert (mine in page._new, callers.count(1000)) == (True, 64)


async def test_where_many_callers_fill_it_who_has_few_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(site_page, "_NEW", 64)
    monkeypatch.setattr(site_page, "_NEW_OF_ONE", 8)
    async with site(tmp_path) as made:
        page = SitePage(ORIGIN, made.users, made.config)
        mine = (await page._offered(33, "grace", {}))["number"]
        for number in range(8 * 20):
            await page._offered(2000 + number % 20, "eve", {})
        assert (mine in page._new, len(page._new)) == (True, 64)
