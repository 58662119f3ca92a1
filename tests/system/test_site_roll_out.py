"""The guide to a site's roll-out, walked on a cluster with the service: each command gets the answer that stands there."""

from __future__ import annotations

import functools
import os
import pwd
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system import shown_pages
from tests.system.faces import Place
from tests.system.shown_pages import Difference, Step
from tests.system.site_service import ACCOUNT, SiteOnCluster, wait
from tests.system.test_connect import HEAD

GUIDE = Path(__file__).parents[2] / "docs/guides/site-roll-out.md"


def steps() -> list[Step]:
    """The commands of the page: of root behind `# `, of a user behind `$ `."""
    blocks = [one["body"] for one in shown_pages.BLOCK.finditer(GUIDE.read_text()) if one["kind"] == "console"]
    parts = [part.partition("\n") for body in blocks for part in re.split(r"^(?=[$#] )", body, flags=re.MULTILINE)]
    return [Step(command, answer.strip("\n")) for command, _, answer in parts if command]


class Walk:
    """The page on this cluster: what it calls by the places of a real site lies in the test's own folder."""

    def __init__(self, site: SiteOnCluster, place: Place, programs: Path) -> None:
        self.site, self.place, self.programs = site, place, programs
        etc = site.place.cluster.conf.parent
        confs = " ".join(str(etc / name) for name in ("slurm.conf", "daemons.conf") if (etc / name).exists())
        uid = pwd.getpwnam(site.place.cluster.user).pw_uid
        self.names = {
            "users/1001": f"users/{uid}",
            "/etc/slurm/slurm.conf": confs,
            "/etc/slurm/job_submit.lua": str(etc / "job_submit.lua"),
            "/etc/systemd/system": f"{site.folder}/units",
            "/etc/slurm-agent-tools": str(site.folder),
            "/var/lib/slurm-agent-tools/site": f"{site.folder}/state",
            "/var/lib/slurm-agent-tools/tickets": f"{site.folder}/tickets",
            "/run/slurm-agent-tools": f"{site.folder}/run",
            "/opt/slurm-agent-tools/bin/python": sys.executable,
            "-u slurm-agent-site": f"-u {ACCOUNT}",
        }
        programs.mkdir(exist_ok=True)
        tool = programs / "slurm-agent-tools"
        tool.write_text(f'#!/bin/sh\nexec {sys.executable} -m slurm_agent_tools "$@"\n')
        tool.chmod(0o755)

    def answer(self, command: str) -> str:
        """What a command prints, with the page's names."""
        words = command[2:]
        for shown, real in self.names.items():
            words = words.replace(shown, real)
        if words.startswith("slurm-agent-tools site "):
            words += f" --config {self.site.config}"
        root = command.startswith("# ")
        argv = ["sh", "-c", words] if root else self.place.as_user(["sh", "-c", words])
        env = self.place.environment() | {"PATH": f"{self.programs}:{os.environ['PATH']}:/usr/sbin"}
        folder = "/" if root else self.place.project
        done = subprocess.run(argv, capture_output=True, text=True, env=env, cwd=folder, timeout=120, check=False)
        return self.told(f"{done.stdout}{done.stderr}".strip("\n"))

    def told(self, text: str) -> str:
        for shown, real in sorted(self.names.items(), key=lambda pair: -len(pair[1])):
            text = text.replace(real, shown)
        text = text.replace(ACCOUNT, "slurm-agent-site").replace(str(self.place.project), "/home/ada/experiments")
        return text.replace(str(self.site.place.cluster.conf.parent), "/etc/slurm")


@pytest.mark.proves("pages-are-run")
def test_the_guide_to_a_roll_out_gets_the_answers_that_it_shows(site_service: SiteOnCluster):
    site, place = site_service, site_service.another()
    (place.project / "job.sh").write_text(f"{HEAD}true\n")
    place.own()
    place.cli("get_status", "--no-cache")
    walk, policy = Walk(site, place, site.folder / "programs"), (site.folder / "policy.yaml").read_text()
    confs = {Path(name): Path(name).read_text() for name in walk.names["/etc/slurm/slurm.conf"].split()}
    differs = []
    try:
        for step in steps():
            # Else the page's second submission is told, besides, that the first still runs.
            wait(lambda: not site.administrator("squeue", "-h"), "the jobs before have ended")
            given = walk.answer(step.command)
            if not shown_pages.alike(step.answer, given):
                differs.append(Difference(step, given))
    finally:
        (site.folder / "policy.yaml").write_text(policy)
        for conf, text in confs.items():
            conf.write_text(text)
        site.administrator("scontrol", "reconfigure")
        wait(lambda: site.site("check").returncode == 0, "the controller as it was")
        site.clear()
    text = GUIDE.read_text()
    if os.environ.get("UPDATE_PAGES"):
        GUIDE.write_text(functools.reduce(lambda page, one: one.mended(page), differs, text))
    else:
        assert not differs, "\n\n".join(map(str, differs))
