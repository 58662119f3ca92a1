"""What `site check` tells of partitions, nodes and accounts: what the account cannot see and the plugin is not told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from slurm_agent_tools.cli.commands.site_install import Installation
from slurm_agent_tools.cli.commands.site_trial import SiteFinding
from slurm_agent_tools.errors import SlurmError
from slurm_agent_tools.models.node import Partition
from slurm_agent_tools.slurm.commands import sacctmgr, scontrol, scontrol_nodes
from slurm_agent_tools.slurm.commands.scontrol_nodes import NodeRecords
from slurm_agent_tools.transport import process, site_files
from slurm_agent_tools.transport.base import FIXED, Completed

_INSTALL = "slurm-agent-tools site install --yes"


def partitions(site: Installation, job_defaults: str) -> Iterator[SiteFinding]:
    """`job_defaults`: those of the whole cluster, which count where a partition has none of its own."""
    if os.geteuid() != 0:
        yield SiteFinding("partitions", "not known", "only root sees all of them")
        return
    name = site.config.account
    everything, seen = _partitions(site, ()), _partitions(site, site_files.as_account(name))
    if everything is None or seen is None:
        who = "root" if everything is None else name
        yield SiteFinding("partitions", "not known", f"scontrol show partition does not answer {who} here")
        return
    hidden = sorted({one.name for one in everything} - {one.name for one in seen})
    if hidden:
        says = f"{name} does not see {', '.join(hidden)}: a job for one is refused, and jobs in it count as none"
        mend = f"sacctmgr add user {name} account=root adminlevel=operator"
        yield SiteFinding("partitions", "wrong", says, mend)
    else:
        yield SiteFinding("partitions", "ok", f"{name} sees all {len(everything)}")
    known = [scontrol.with_defaults(one, {"JobDefaults": job_defaults}) for one in everything]
    yield from _cpus_of_gpus(site, known)
    yield from _whole_nodes(site, known)
    yield from _sizes(site, known)


def _partitions(site: Installation, switch: Sequence[str]) -> tuple[Partition, ...] | None:
    """Those that root sees, or with `switch` another user, asked in the way in which the service asks."""
    with suppress(OSError, SlurmError):
        return scontrol.parse_partitions(answer(site, switch, scontrol.partitions_argv()))
    return None


def answer(site: Installation, switch: Sequence[str], argv: Sequence[str]) -> Completed:
    """What the site's Slurm says to one command, as root or with `switch` as another user. Raises OSError."""
    folder, conf = site.config.bin_dir, site.config.slurm_conf
    asked = [*switch, str(folder / argv[0]) if folder else argv[0], *argv[1:]]
    env = site_files.ENV | FIXED | ({"SLURM_CONF": str(conf)} if conf else {})
    ended = process.answered(asked, timeout=10, env=env)
    return Completed(tuple(asked), ended.exit_code, ended.stdout, ended.stderr, ended.seconds)


def _sizes(site: Installation, partitions: Sequence[Partition]) -> Iterator[SiteFinding]:
    """Threads of a core and GPUs of a node, by which memory is shared out: the plugin counts those of site.toml."""
    try:
        nodes = NodeRecords().parse(answer(site, (), scontrol_nodes.argv()))
    except (OSError, SlurmError):
        yield SiteFinding("nodes", "not known", "scontrol show nodes does not answer root here")
        return
    threads = {one.threads_per_core for one in nodes}
    counted, gpus = site.config.threads_per_core, max((one.gpus for one in nodes), default=0)
    if max(threads, default=1) > counted:
        says = f"{max(threads)} of a core, of which the plugin counts {counted}: memory for each CPU may be more"
        yield SiteFinding("threads", "wrong", says, _write("threads_per_core", max(threads)))
    split = ", ".join(sorted(one.name for one in partitions if one.max_mem_per_cpu))
    if max(threads, default=1) > 1 and split:  # 26.05: four CPUs for one
        says = f"several of a core, and {split} with MaxMemPerCPU may give more CPUs than the plugin counts"
        yield SiteFinding("threads", "wrong", says, "take MaxMemPerCPU out of such partitions")
    if gpus > (site.config.most_gpus_per_node or gpus):
        says = f"{gpus} on a node, of which the plugin counts {site.config.most_gpus_per_node}"
        yield SiteFinding("GPUs", "wrong", says, _write("most_gpus_per_node", gpus))


def _write(key: str, number: int) -> str:
    return f"write {key} = {number} in site.toml, then: {_INSTALL}"


def _cpus_of_gpus(site: Installation, partitions: Sequence[Partition]) -> Iterator[SiteFinding]:
    """CPUs that come with a GPU, and memory with them: the plugin counts what site.toml says of it."""
    counted = site.config.default_cpus_per_gpu or 0
    more = [one for one in partitions if (one.def_cpu_per_gpu or 0) > counted]
    if more:
        most = max(one.def_cpu_per_gpu or 0 for one in more)
        says = f"{most} in {', '.join(sorted(one.name for one in more))}, of which the plugin counts {counted}"
        yield SiteFinding("DefCpuPerGPU", "wrong", says, _write("default_cpus_per_gpu", most))


def _whole_nodes(site: Installation, partitions: Sequence[Partition]) -> Iterator[SiteFinding]:
    """GPUs that a job gets with its nodes: how many a node has is not told to the plugin."""
    names = ", ".join(sorted(one.name for one in partitions if one.exclusive and one.total_gpus))
    if names and site.config.most_gpus_per_node is None:
        says = f"{names}: a job there gets all GPUs of its nodes, and the plugin counts those that it asks for"
        mend = f"write most_gpus_per_node in site.toml, then: {_INSTALL}"
        yield SiteFinding("whole nodes", "wrong", says, mend)
    elif names:
        says = f"{names}: a job there without GPUs gets all of its nodes, which the plugin does not count"
        yield SiteFinding("whole nodes", "note", says, "name who may use it: AllowAccounts, AllowGroups or AllowQos")


def associations(site: Installation, cluster: str, *, qos_counts: bool) -> Iterator[SiteFinding]:
    """Accounts below those of agents, and who may make some; where QOS count, who has none that a job gets unasked."""
    try:
        known = sacctmgr.parse_all_associations(answer(site, (), sacctmgr.all_associations_argv(cluster)))
        coordinators = sacctmgr.parse_coordinators(answer(site, (), sacctmgr.coordinators_argv()))
    except (OSError, SlurmError):
        yield SiteFinding("associations", "not known", "sacctmgr show associations does not answer here")
        return
    agents, parents = site.config.agent_accounts, {one.account: one.parent for one in known if not one.user}
    for account in map(str.lower, agents):  # as Slurm, which knows them in small letters
        for user in coordinators.get(account, ()):
            says = f"{user}, of {account}: may make accounts below it, whose jobs need no ticket"
            where = account
            while user in coordinators.get(parents.get(where) or "", ()):  # who is one there is one of all below
                where = parents[where] or ""
            yield SiteFinding(
                "coordinators", "wrong", says, f"sacctmgr delete coordinator account={where} names={user}"
            )
    if below := sorted(_below(agents, parents)):
        says = f"{', '.join(below)}: below one of agents, and jobs there need no ticket"
        mend = f"write agent_accounts = {json.dumps([*agents, *below])} in site.toml, then: {_INSTALL}"
        yield SiteFinding("accounts below", "wrong", says, mend)
    without = sorted({one.user for one in known if one.user and not one.default_qos and "normal" not in one.qos})
    if qos_counts and without:
        more = f" and {len(without) - 3} more" if len(without) > 3 else ""
        says = f"{', '.join(without[:3])}{more} have none, nor normal: Slurm refuses their tickets without --qos"
        yield SiteFinding("default QOS", "note", says, f"sacctmgr modify user {without[0]} set DefaultQOS=NAME")


def _below(agents: Sequence[str], parents: Mapping[str, str | None]) -> set[str]:
    """The accounts below those of agents, however far, which are not named themselves."""
    own, size = {account.lower() for account in agents}, 0
    named = set(own)
    while size != len(named):
        size = len(named)
        named |= {account for account, parent in parents.items() if parent in named}
    return named - own
