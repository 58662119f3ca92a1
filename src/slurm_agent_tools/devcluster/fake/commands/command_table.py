"""The commands that the fake Slurm knows, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from slurm_agent_tools.devcluster.fake.answering import Answer, Command, Session, UnknownCommand, full_version
from slurm_agent_tools.devcluster.fake.commands.fake_sacct import run_sacct
from slurm_agent_tools.devcluster.fake.commands.fake_sbatch import run_sbatch
from slurm_agent_tools.devcluster.fake.commands.fake_scancel import run_scancel
from slurm_agent_tools.devcluster.fake.commands.fake_scontrol import run_scontrol
from slurm_agent_tools.devcluster.fake.commands.fake_sdiag import run_sdiag
from slurm_agent_tools.devcluster.fake.commands.fake_squeue import run_squeue
from slurm_agent_tools.devcluster.fake.commands.fake_sstat import run_sstat


def find_command(argv: Sequence[str]) -> Command:
    """What runs a command line. Raises UnknownCommand."""
    command = _COMMANDS.get(argv[0])
    if command is None:
        raise UnknownCommand(argv)
    return command


def _date(session: Session, words: Sequence[str]) -> Answer:
    if list(words[1:]) != ["+%s"]:
        raise UnknownCommand(words)
    return Answer(f"{int(session.slurm.now)}\n")


def _df(session: Session, words: Sequence[str]) -> Answer:  # noqa: ARG001 - the same of every folder
    head = "Filesystem     1024-blocks      Used Available Capacity Mounted on\n"
    return Answer(f"{head}/dev/fake        104857600  41943040  62914560      40% /\n")


def _sinfo(session: Session, words: Sequence[str]) -> Answer:
    if list(words[1:]) != ["--version"]:
        raise UnknownCommand(words)
    return Answer(f"slurm-wlm {full_version(session.slurm)}\n")


def _sacctmgr(session: Session, words: Sequence[str]) -> Answer:
    """Reservations and events that were; those that a test set up."""
    if len(words) < 5 or words[3] != "show" or words[4] not in {"reservations", "events"}:
        raise UnknownCommand(words)
    return Answer(session.extra.get(f"past {words[4]}", ""))


_COMMANDS: Mapping[str, Command] = {
    "sbatch": run_sbatch, "scancel": run_scancel, "scontrol": run_scontrol, "squeue": run_squeue, "sacct": run_sacct,
    "sinfo": _sinfo, "sdiag": run_sdiag, "sstat": run_sstat, "sacctmgr": _sacctmgr,
    "date": _date, "df": _df,
}  # fmt: skip
