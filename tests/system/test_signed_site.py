"""A site that shares a key with its controller and no folder: what counts as spent, and a change of keys."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

import pytest
from tests.system.faces import Place
from tests.system.site_service import ACCOUNT, AGENTS, SiteOnCluster, installed, wait
from tests.system.test_boundary import SCRIPT, ask, project, sbatch

from slurm_agent_tools.server.site.site_config import read

HMAC = """\
tokens = "hmac"
key = "{folder}/service.key"
controller_key = "{folder}/controller/ticket.key"
ticket_seconds = 900
"""

pytestmark = pytest.mark.proves("boundary-holds")

_numbers = count()


@pytest.fixture(scope="module")
def site() -> Iterator[SiteOnCluster]:
    if os.geteuid() != 0:
        pytest.skip("a service under an account of its own is installed by root")
    with installed(HMAC, f"{ACCOUNT}-k") as made:
        yield made


@dataclass(frozen=True)
class Given:
    """A ticket of the service for a script that nobody sent before."""

    place: Place
    comment: str
    script: str

    def sent(self, *words: str) -> str:
        """What Slurm said to a job with it; nothing where it was let in."""
        went, said = sbatch(self.place, f"--comment={self.comment}", *words, script=self.script)
        return "" if went else said


def asked(site: SiteOnCluster, place: Place) -> Given | None:
    """None where the cap is reached."""
    script = f"{SCRIPT}echo {next(_numbers)}\n"
    (place.project / "job.sh").write_text(script)
    answer = ask(site, place)
    if answer.get("word"):
        return Given(place, f"{answer['token']} {answer['word']}", script)
    assert "concurrent-jobs" in str(answer), answer
    return None


def given(site: SiteOnCluster, place: Place) -> Given:
    made = asked(site, place)
    assert made
    return made


def emptied(site: SiteOnCluster) -> None:
    site.clear()
    wait(lambda: not site.administrator("squeue", "-h"), "an empty queue")


def test_a_comment_of_the_users_own_makes_no_open_ticket_look_spent(site: SiteOnCluster):
    """Outside of the agents' accounts, where a small job needs no ticket."""
    place = project(site)
    made = [given(site, place) for _ in range(3)]
    assert asked(site, place) is None
    for one in made:
        token = one.comment.split()[0]
        went, said = sbatch(place, f"--comment={token}")
        assert went, said
        ask(site, place, "settle", token=token)
    emptied(site)
    for _ in range(2):
        assert asked(site, place) is None
    assert [one.sent() for one in made] == [""] * 3
    assert asked(site, place) is None  # three jobs now, and no ticket
    emptied(site)
    last = given(site, place)
    assert "account agents is not in its ticket" in last.sent(f"--account={AGENTS}")
    assert last.sent() == ""
    emptied(site)


def test_a_change_of_keys_lets_old_tickets_in_while_it_lasts_and_none_afterwards(site: SiteOnCluster):
    emptied(site)
    place, keys, plain = project(site), read(site.config), site.config.read_text()
    spent, early, late = (given(site, place) for _ in range(3))
    assert spent.sent() == ""
    old = keys.controller_key.with_name("old.key")
    shutil.copy2(keys.controller_key, old)
    os.chown(old, keys.controller_key.stat().st_uid, keys.controller_key.stat().st_gid)
    for path in (keys.key, keys.controller_key):
        path.unlink()
    site.config.write_text(f'{plain}controller_old_key = "{old}"\n')
    done = site.site("install", "--yes")
    assert done.returncode == 0, done.stderr
    assert keys.key.read_bytes() == keys.controller_key.read_bytes() != old.read_bytes()
    assert early.sent() == ""  # the service signs with the old one still
    assert "is used already" in spent.sent()
    site.stop()
    site.start()
    emptied(site)
    fresh = given(site, place)
    assert fresh.sent() == ""
    assert "is used already" in fresh.sent()

    site.config.write_text(plain)
    done = site.site("install", "--yes")
    assert done.returncode == 0, done.stderr
    assert "is not signed by this site" in late.sent()
    assert "is not signed by this site" in spent.sent()
    assert "is used already" in fresh.sent()
    emptied(site)
    assert given(site, place).sent() == ""
    assert site.site("check").returncode == 0


def test_check_tells_what_slurm_gives_past_a_ticket(site: SiteOnCluster):
    etc = site.place.cluster.conf.parent
    confs = [conf for conf in (etc / "slurm.conf", etc / "daemons.conf") if conf.exists()]
    before = [conf.read_text() for conf in confs]
    for conf, text in zip(confs, before, strict=True):
        conf.write_text(f"{text}RequeueExit=42\nRequeueExitHold=43\nAllowSpecResourcesUsage=YES\nMaxMemPerCPU=99999\n")
    try:
        site.administrator("scontrol", "reconfigure")
        done = site.site("check", "--json")
    finally:
        for conf, text in zip(confs, before, strict=True):
            conf.write_text(text)
        site.administrator("scontrol", "reconfigure")
    wrong = {one["about"]: one["says"] for one in json.loads(done.stdout)["findings"] if one["outcome"] == "wrong"}
    assert set(wrong) == {"RequeueExit", "RequeueExitHold", "AllowSpecResourcesUsage", "MaxMemPerCPU"}
    assert "runs again under its ticket" in wrong["RequeueExit"]
    assert done.returncode != 0
    assert site.site("check").returncode == 0


def test_check_tells_of_accounts_in_which_no_ticket_is_asked_for_and_of_users_without_a_qos(site: SiteOnCluster):
    site.administrator("sacctmgr", "-i", "add", "account", "below", f"parent={AGENTS}")
    site.administrator("sacctmgr", "-i", "add", "coordinator", f"account={AGENTS}", "names=labmate")
    site.administrator("sacctmgr", "-i", "add", "qos", "special")
    site.administrator("sacctmgr", "-i", "add", "user", "labmate", "account=below", "qos=special")
    try:
        found = json.loads(site.site("check", "--json").stdout)["findings"]
    finally:
        site.administrator("sacctmgr", "-i", "delete", "coordinator", f"account={AGENTS}", "names=labmate")
        site.administrator("sacctmgr", "-i", "delete", "user", "labmate", "account=below")
        site.administrator("sacctmgr", "-i", "delete", "account", "below")
        site.administrator("sacctmgr", "-i", "delete", "qos", "special")
    told = {one["about"]: one["says"].split()[0] for one in found if one["outcome"] != "ok"}
    assert told | {"coordinators": "labmate,", "accounts below": "below:", "default QOS": "labmate"} == told
    assert site.site("check").returncode == 0
