"""This machine as a real cluster of one node: brought up, mended after a crash, taken down, asked what it holds.

It shares folder, daemons and accounting with the devcluster; it claims nothing that the machine lacks, and what runs on
it is work: a daemon that died is started again without touching jobs, and nobody's jobs end unasked.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from slurm_agent_tools.devcluster import (
    cgroups,
    definition,
    folders,
    hostname,
    lifecycle,
    machine_facts,
    packages,
    processes,
    workers,
)
from slurm_agent_tools.devcluster.definition import SEARCH, Cluster, Status
from slurm_agent_tools.devcluster.machine_facts import Kept, MachineGpu, Sight
from slurm_agent_tools.errors import InputError, SlurmUnreachable
from slurm_agent_tools.settings import Settings, SlurmSettings, devcluster_place, workstation_place
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.base import SLURM_COMMANDS, Completed, OnOutput, Runner
from slurm_agent_tools.transport.local import LocalTransport

Say = Callable[[str], None]

UP = "slurm-agent-tools workstation up"

_FORGET = "slurm-agent-tools workstation down --wipe"

_INSTEAD = "work as an ordinary user, or try it as root on a private Slurm: slurm-agent-tools devcluster up --yes"

FOR_OTHERS = f"a workstation is for the ordinary users of this machine; jobs of root are refused: {_INSTEAD}"
"""What root is told before it comes up."""

_SEEN_BY_ALL = {cgroups.MEMORY: "memory", cgroups.CORES: "cores", cgroups.DEVICES: "GPUs"}


async def up(
    folder: Path | None = None,
    *,
    kept: Kept | None = None,
    slurm: str | None = None,
    yes: bool = False,
    gpus: Sequence[MachineGpu] | None = None,
    say: Say = print,
) -> Cluster:
    """Bring this machine up as a cluster, or start what of it does not run; jobs that run go on.

    `kept`: for the person at the desk, where nothing is said as before. `gpus` in place of those that are found.
    DevclusterError when it cannot be done, InputError for what counts from the next start only.
    """
    where, kept = _place(folder), kept or Kept()
    before = definition.recorded(where)
    if before is not None:
        slurm = _as_before(before, slurm, kept)
    wanted = None if packages.checked_release(slurm) is None else packages.programs(str(slurm))
    await hostname.check()
    unpack = wanted is not None and not wanted.is_dir()
    await packages.ensure_packages(accounting=True, yes=yes, say=say, release=unpack)
    if slurm is not None:
        await packages.ensure_release(slurm, say)
    beside = workstation_place.MACHINES
    if where != beside and running(beside):
        say(f"mind: the machine's own workstation in {beside} runs too; both give the same cores and memory to jobs")
    with folders.written_by_us():
        lifecycle.claim(where)
    with lifecycle.locked(where), folders.written_by_us():
        before = definition.recorded(where)
        if before is not None and processes.running(before, "slurmctld") is not None:
            await _mend(before, say)
            return before
        if before is not None:
            await lifecycle.stop_daemons(before)  # what is left of a crash; jobs go on
        if before is not None and before.machine is not None and processes.steps(before):
            machine = before.machine  # jobs of before run on in what they were given
        else:
            said = before.machine.kept if before is not None and before.machine is not None else Kept()
            machine = await machine_facts.read(Sight(_ask(wanted)), kept.over(said), gpus)
        with definition.ports(None, before.base_port if before else None, definition.OF_WORKSTATIONS) as base:
            cluster = Cluster(where, base, _person(before), wanted, machine)
            definition.save(cluster)
            try:
                await lifecycle.bring(cluster, accounting=True, extra="", say=say)
            except BaseException:
                with anyio.CancelScope(shield=True):
                    await lifecycle.stop_daemons(cluster)
                raise
    return cluster


def _as_before(before: Cluster, slurm: str | None, kept: Kept) -> str | None:
    """The version of Slurm that a workstation has. InputError where another one is asked for, or it is up already."""
    if slurm is not None and slurm != before.release:
        held = "the distribution's Slurm" if before.release is None else f"Slurm {before.release}"
        hint = "Take it down with --wipe first; its queue and accounting go with that."
        raise InputError("slurm", slurm, f"does not read the state of this workstation, which is of {held}", hint=hint)
    if kept != Kept() and processes.running(before, "slurmctld") is not None:
        name = "keep_memory" if kept.cores is None else "keep_cores"
        said = kept.memory if kept.cores is None else kept.cores
        raise InputError(name, said, "counts when it comes up, and it is up", hint="Take it down first.")
    return before.release


def _person(before: Cluster | None) -> str:
    """Whom the accounting knows from the start; others are served too."""
    if not definition.is_root():
        return definition.me()
    return os.environ.get("SUDO_USER") or (before.user if before else definition.me())


async def _mend(cluster: Cluster, say: Say) -> None:
    """Start each daemon that does not run; its configuration stays as the others know it."""
    dead = [name for name in cluster.daemons if processes.running(cluster, name) is None]
    for name in dead:
        say(f"starting {name}, which did not run")
        await lifecycle.start_daemon(cluster, name)
    await workers.fit(cluster)
    await workers.partitions(cluster, "UP")
    lifecycle.stamp(cluster).touch()
    say(f"up in {cluster.folder}" if dead else f"already up in {cluster.folder}")


async def down(folder: Path | None = None, *, jobs: str | None = None, wipe: bool = False, say: Say = print) -> None:
    """Stop it. `jobs` says what becomes of those that run: `end` or `keep` (they go on, and are known at the next up).

    InputError where some run and nothing is said. `wipe` deletes the folder, and takes no `keep`.
    """
    where = _place(folder)
    cluster = definition.recorded(where)
    if cluster is None:
        say(f"no workstation in {where}{_of_the_machine(where)}")
        return
    if wipe and jobs == "keep":
        raise InputError("jobs", jobs, "cannot be kept where everything is deleted", hint="Say --end-jobs.")
    lifecycle.owned(where)
    with lifecycle.locked(where):
        alive = processes.steps(cluster)
        if alive and jobs is None:
            raise InputError(
                "jobs", len(alive), "parts of jobs still run", hint="Wait for them, or say --keep-jobs or --end-jobs."
            )
        if jobs == "keep":
            lifecycle.stamp(cluster).unlink(missing_ok=True)
            await lifecycle.stop_daemons(cluster)
        else:
            for line in await lifecycle.take(cluster):
                say(f"ended: {line}")
        if wipe:
            shutil.rmtree(where)
    say("down" + (f", and {where} is deleted" if wipe else f"; its state stays in {where}"))


def _of_the_machine(where: Path) -> str:
    found = workstation_place.find()
    return (
        "" if found is None or found.folder == where else f"; that of the machine is {found.folder}: root takes it down"
    )


@dataclass(frozen=True, slots=True)
class WorkstationStatus:
    """What runs, on what, and what does not hold; `cluster` is None where none was ever brought up."""

    folder: Path
    cluster: Cluster | None
    status: Status
    notes: tuple[str, ...]


async def status(folder: Path | None = None) -> WorkstationStatus:
    """Look at the one of this user or of the machine."""
    found = None if folder else workstation_place.find()
    where = found.folder if found else _place(folder)
    cluster = definition.recorded(where)
    if cluster is None:
        return WorkstationStatus(where, None, Status(up=False, daemons={}, nodes={}), ())
    told = await lifecycle.status(where)
    machine = cluster.machine.unread if cluster.machine else ()
    return WorkstationStatus(where, cluster, told, (*notes(cluster), *machine))


def notes(cluster: Cluster) -> tuple[str, ...]:
    """What does not hold on this workstation, a sentence each, for answers that depend on it."""
    limits = cgroups.recorded(cluster)
    found = []
    if limits is not None:
        missing = [_SEEN_BY_ALL[wall] for wall in cgroups.WALLS if wall not in limits.walls]
        if cluster.machine is not None and not cluster.machine.gpus and "GPUs" in missing:
            missing.remove("GPUs")
        if missing:
            found.append(f"No wall between jobs holds for {_and(missing)} on this workstation: {_meaning(missing)}")
    if workstation_place.is_root():
        found.append(f"Jobs of root are off on a workstation: {_INSTEAD}")
    return tuple(found)


def _meaning(missing: Sequence[str]) -> str:
    said = {
        "memory": "a job over its memory is found by looking every two seconds",
        "cores": "a job can use every core",
        "GPUs": "a job can open every GPU, CUDA_VISIBLE_DEVICES is only advice",
    }
    words = "; ".join(said[one] for one in missing)
    return f"{words}. Brought up by root, it has those that the kernel here offers."


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def running(folder: Path) -> bool | None:
    """Whether the controller of the workstation in a folder runs; None where this user may not see that."""
    cluster = Cluster(folder, 0, "")
    if not lifecycle.stamp(cluster).exists():
        return False
    if processes.running(cluster, "slurmctld") is not None:
        return True
    return False if os.access("/proc/1/stat", os.R_OK) else None


def asleep(slurm: SlurmSettings) -> str | None:
    """What to do where the workstation with this configuration is not up."""
    where = _folder(slurm)
    return f"The workstation is not up. {_advice(where)}" if running(where) is False else None


def _advice(where: Path) -> str:
    """What to do where it is not up; a devcluster that runs comes first, as it is there already."""
    there = devcluster_place.hint()
    if workstation_place.is_root():
        return there.strip() or f"A workstation runs no jobs of root; {workstation_place.offer()}"
    forget = f"; to forget it, with its queue and accounting: {_FORGET}" if where == workstation_place.folder() else ""
    return f"{there}{'Or run' if there else 'Run'}: {UP}{forget}"


def _folder(slurm: SlurmSettings) -> Path:
    return (slurm.conf or Path()).parent.parent


def _place(folder: Path | None) -> Path:
    return definition.checked(folder or workstation_place.folder())


def _ask(bin_dir: Path | None) -> machine_facts.Ask:
    """Runs programs of the system, or of another Slurm."""
    search = SEARCH if bin_dir is None else f"{bin_dir}:{SEARCH}"
    search += ":/opt/rocm/bin:/usr/local/bin"

    async def ask(argv: Sequence[str]) -> str | None:
        try:
            ended = await process.run(list(argv), env={"PATH": search, "LANG": "C.UTF-8"}, timeout=30)
        except OSError:
            return None
        return ended.stdout.decode(errors="replace") if ended.exit_code == 0 else None

    return ask


class WorkstationTransport(LocalTransport):
    """This machine's own Slurm: that it is not up is said at once, and with what to do."""

    def __init__(self, settings: Settings, slurm: SlurmSettings) -> None:
        super().__init__(settings, slurm)
        self._folder = _folder(slurm)
        self.runner = _Awake(self.runner, self._folder)

    def notes(self) -> tuple[str, ...]:
        """See `notes` of this module; nothing while there is no workstation."""
        cluster = definition.recorded(self._folder)
        return () if cluster is None else notes(cluster)

    def refused(self) -> str:
        """See LocalTransport: a workstation runs no jobs of root."""
        return _INSTEAD if workstation_place.is_root() else ""


class _Awake:
    """Runs commands; those of Slurm only while its controller runs."""

    def __init__(self, inner: Runner, folder: Path) -> None:
        self._inner, self._folder = inner, folder

    async def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float = 10.0,  # noqa: ASYNC109 - the limit of the command
        max_output: int = 64 * 2**20,
        on_output: OnOutput | None = None,
    ) -> Completed:
        """See Runner. SlurmUnreachable, with nothing sent, where the workstation is not up."""
        if argv[0] in SLURM_COMMANDS and running(self._folder) is False:
            raise SlurmUnreachable(f"{argv[0]} was not run: the workstation is not up.", hint=_advice(self._folder))
        return await self._inner.run(
            argv, stdin=stdin, env=env, cwd=cwd, timeout=timeout, max_output=max_output, on_output=on_output
        )
