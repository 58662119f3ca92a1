"""A ticket's whole way, tried by `site check`: made for the service's own account, and spent by the controller.

The trial is an `sbatch --test-only`, so no job comes of it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Literal

from slurm_agent_tools.cli.commands.site_install import Installation
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models.submission_ticket import Ceilings
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.server.site.ticket_issuer import TicketIssuer
from slurm_agent_tools.store.ticket_folder import TicketFolder
from slurm_agent_tools.transport import process, site_files

Outcome = Literal["ok", "note", "wrong", "not known"]

_WRAPPED = b"#!/bin/sh\n# This script was created by sbatch --wrap.\n\ntrue\n"
"""What `sbatch --wrap=true` sends."""

_SECONDS = 60


@dataclass(frozen=True, slots=True)
class SiteFinding:
    """One thing that was looked at; `mend` says what to do where it is not as it should be."""

    about: str
    outcome: Outcome
    says: str
    mend: str = ""


def trial(site: Installation) -> SiteFinding:
    """Whether the controller spends a ticket of this site, once. Root alone can become the account for it."""
    account = site.machine.user(site.config.account)
    if os.geteuid() != 0 or account is None:
        return SiteFinding("a trial ticket", "not known", "only root can try one")
    expires = int(time.time()) + _SECONDS
    allowed = Ceilings(account.pw_uid, expires, time_limit=1, memory_per_node=1, memory_per_gpu=1)
    ticket = tickets.new_ticket(allowed, _WRAPPED)
    try:
        word = TicketIssuer(site.config).publish(ticket, _WRAPPED)
        first, second = _sent(site, word), _sent(site, word)
        spent = site.config.tokens == "hmac" or TicketFolder(site.config.tickets).state(ticket.nonce, 0.0) == "spent"
    except (AgentToolsError, OSError, ValueError) as error:
        return SiteFinding("a trial ticket", "wrong", str(error), "slurm-agent-tools site install --yes")
    finally:
        if site.config.tokens == "files":
            for path in (site.config.tickets / ticket.nonce, site.config.used / ticket.nonce):
                path.unlink(missing_ok=True)
    if spent and "ticket" not in first and "is used already" in second:
        return SiteFinding("a trial ticket", "ok", "the controller spent it, and refused it the second time")
    said = next((line for line in first.splitlines() if "ticket" in line), first.strip()[-200:] or "it let both in")
    mend = "scontrol reconfigure; then look for `floor` in slurmctld.log"
    return SiteFinding("a trial ticket", "wrong", f"the controller did not spend it: {said}", mend)


def _sent(site: Installation, word: str) -> str:
    """What Slurm says to the account's trial submission."""
    name, folder = site.config.account, site.config.bin_dir
    conf = [] if site.config.slurm_conf is None else [f"SLURM_CONF={site.config.slurm_conf}"]
    env = ["env", "-i", "--chdir=/", *(f"{key}={value}" for key, value in site_files.ENV.items()), *conf]
    switch = [*site_files.as_account(name), *env]
    asked = ["--test-only", "--time=1", "--mem=1M", "--ntasks=1", f"--comment={word}", "--wrap=true"]
    argv = [*switch, str(folder / "sbatch") if folder else "sbatch", *asked]
    ended = process.answered(argv, timeout=30, env=site_files.ENV)
    return (ended.stdout + ended.stderr).decode(errors="replace")
