"""A site's service of this machine for `site check`, and what Slurm's commands answer it."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from slurm_agent_tools.cli.commands import site_check
from slurm_agent_tools.cli.commands.site_install import Installation
from slurm_agent_tools.cli.commands.site_trial import SiteFinding
from slurm_agent_tools.server.site.site_config import SiteConfig
from slurm_agent_tools.server.site.site_layout import TargetSystem
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.process import EndedProcess

ACCOUNT = "nobody"

Answer = Callable[[Sequence[str]], tuple[int, str]]


def installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """A service of this machine, of which the folders of tickets alone are there."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for name in ("tickets/used", "run"):
        (tmp_path / name).mkdir(parents=True)
    config = SiteConfig.model_validate({
        "account": ACCOUNT, "slurm_user": pwd.getpwuid(os.getuid()).pw_name, "socket": tmp_path / "run/site.sock",
        "state": tmp_path / "state", "policy": tmp_path / "policy.yaml", "tickets": tmp_path / "tickets",
        "plugin": tmp_path / "slurm/job_submit.lua", "units": tmp_path / "units", "bin_dir": tmp_path / "bin",
    })  # fmt: skip
    return Installation(config, tmp_path / "site.toml", TargetSystem())


def slurm_answers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Answer]:
    """What Slurm's commands answer, by their names; the others cannot be started."""
    answers: dict[str, Answer] = {}

    def answered(argv: Sequence[str], **_: object) -> EndedProcess:
        name = next((Path(word).name for word in argv if Path(word).name in {"scontrol", "sbatch", "sacctmgr"}), "")
        if name not in answers:
            raise FileNotFoundError(2, "No such file or directory", name)
        code, text = answers[name](argv)
        return EndedProcess(code, text.encode(), b"", 0.0, truncated=False)

    monkeypatch.setattr(process, "answered", answered)
    return answers


def about(site: Installation, name: str) -> SiteFinding:
    [found] = [one for one in site_check.findings(site) if one.about == name]
    return found


def settings(**told: str) -> Answer:
    """`scontrol show config` with these settings."""
    rows = "".join(f"{name:<24}= {value}\n" for name, value in told.items())
    return lambda _: (0, f"Configuration data as of 2026-11-24T00:00:00\n{rows}")
