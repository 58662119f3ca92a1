"""`site check`: on one screen whether the site's service stands as it should, the verdict first."""

from __future__ import annotations

import os
import re
import socket
import stat
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import slurm_agent_tools
from slurm_agent_tools.cli.commands import site_cluster
from slurm_agent_tools.cli.commands.site_install import Installation
from slurm_agent_tools.cli.commands.site_trial import SiteFinding, trial
from slurm_agent_tools.errors import AgentToolsError
from slurm_agent_tools.models import allowed_signers
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.policy.site_rules import HELD_BY_NOTHING
from slurm_agent_tools.server.site import site_config, site_layout
from slurm_agent_tools.server.site.site_layout import Owned
from slurm_agent_tools.server.site.site_page import keys_for
from slurm_agent_tools.slurm.commands import scontrol

_WAIT = 5.0


def findings(site: Installation) -> list[SiteFinding]:
    """Everything, in the order in which it would be mended."""
    found = [*_account(site), *(_owned(site, one) for one in site.things() if not one.shared)]
    loaded = None
    try:
        loaded = site_layout.policy(site.config, site.machine)
        found += _policy(site, loaded)
    except AgentToolsError as error:
        found.append(SiteFinding("policy", "wrong", error.message, error.hint))
    found += _plugin(site, loaded)
    found += _program()
    found += _socket(site, "socket", site.config.socket) if site.machine.here else []
    if site.machine.here and site.config.page_origin is not None:
        found += _page(site)
    found += _controller(site) if site.machine.here else []
    return found


def verdict(found: list[SiteFinding]) -> str:
    """One line for all of it."""
    wrong = sum(one.outcome == "wrong" for one in found)
    unknown = sum(one.outcome == "not known" for one in found)
    if wrong:
        return f"NOT AS IT SHOULD BE: {wrong} of {len(found)}"
    return f"as it should be: {len(found) - unknown} looked at" + (f", {unknown} could not be told" if unknown else "")


def _account(site: Installation) -> Iterator[SiteFinding]:
    name, install = site.config.account, "slurm-agent-tools site install --yes"
    found = site.machine.user(name)
    if found is None:
        yield SiteFinding("account", "wrong", f"{name} does not exist", install)
        return
    wrong = [] if site_layout.no_login(found) else [f"its shell is {found.pw_shell}"]
    wrong += ["it is root"] if found.pw_uid == 0 else []
    if site.machine.here:
        others = sorted(set(os.getgrouplist(name, found.pw_gid)) - {found.pw_gid})
        wrong += [f"it is in further groups: {', '.join(map(str, others))}"] if others else []
    says = "; ".join(wrong) or f"{name} ({found.pw_uid}): no login, no further group"
    yield SiteFinding(
        "account", "wrong" if wrong else "ok", says, f"usermod --shell /usr/sbin/nologin --groups '' {name}"
    )


def _owned(site: Installation, one: Owned) -> SiteFinding:
    if site.right(one):
        above = _others_above(site, one) if one.text is None and site.machine.here else None
        says = f"{above}, in which it lies, is not root's alone: another folder can be put in its place"
        mend = "leave it below /var/lib, then: slurm-agent-tools site install --yes"
        return (
            SiteFinding(str(one.path), "wrong", says, mend) if above else SiteFinding(str(one.path), "ok", one.rights)
        )
    try:
        found = site.at(one).lstat()
    except OSError as error:
        return SiteFinding(
            str(one.path), "wrong", error.strerror or "cannot be seen", "slurm-agent-tools site install --yes"
        )
    has = f"{found.st_uid}:{found.st_gid} {stat.S_IMODE(found.st_mode):04o}"
    says = (
        f"is {has}, not {one.rights}" if not _rights(site, one, found) else "says something else than site.toml makes"
    )
    return SiteFinding(str(one.path), "wrong", says, "slurm-agent-tools site install --yes")


def _others_above(site: Installation, one: Owned) -> Path | None:
    """The folder above in which somebody beside root could rename this one, but for folders of the service itself."""
    own = {site.at(other) for other in site.things() if not other.shared}
    for place in site.at(one).parents if os.geteuid() == 0 else ():
        if place not in own and not site_config.kept(place.stat(), is_file=False, owners=(0, os.getuid())):
            return place
    return None


def _rights(site: Installation, one: Owned, found: os.stat_result) -> bool:
    user, group = site.machine.user(one.user), site.machine.group(one.group)
    owner = (0 if user is None else user.pw_uid, 0 if group is None else group)
    return (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (*owner, one.mode)


def _policy(site: Installation, loaded: LoadedPolicy) -> Iterator[SiteFinding]:
    says = f"{loaded.name}, version {loaded.version}, sha256 {loaded.sha256[:12]}, from {loaded.source}"
    mend = f"write the site's own to {site.config.policy}: the service does not start without"
    yield SiteFinding("policy", "ok" if loaded.by_site else "wrong", says, mend)
    if idle := sum(not item.users for item in loaded.policy.exceptions):
        says = f"{idle} name no users and count for nobody: project and script are what a caller says"
        yield SiteFinding("exceptions", "wrong", says, "say under `users` for whom each is")
    for rule in loaded.expressions:
        if names := [name for name in rule.names if name in HELD_BY_NOTHING]:
            says = f"{rule.rule.id} speaks of {', '.join(names)}, which a job may have otherwise than it was judged"
            yield SiteFinding("site rules", "note", says, "it can remind, and cannot hold")
    signers, lines = len(loaded.policy.allowed_signers), loaded.policy.allowed_passkeys
    keys = keys_for(site.config.page_origin, lines)
    if lines and len(keys) < len(lines):
        says = f"{len(lines) - len(keys)} of {len(lines)} passkeys count at no page of the service"
        mend = "make them on its page, at page_origin of site.toml, under /enrol/NAME"
        yield SiteFinding("passkeys", "wrong", says, mend)
    principals: dict[bytes, set[str]] = {}
    for signer in map(allowed_signers.parse, loaded.policy.allowed_signers):
        principals.setdefault(signer.key, set()).update(signer.principals)
    if several := [sorted(names) for names in principals.values() if len(names) > 1 or {"*", "?"} & set(min(names))]:
        says = f"the key of {','.join(several[0])} is for several: who brings a signature says by which of them it is"
        yield SiteFinding("signers", "note", says, "write one name for each key in allowed_signers")
    if signers or keys:
        yield SiteFinding("who may approve", "ok", f"{signers} by signature, {len(keys)} by passkey")
    else:
        mend = f"list allowed_signers or allowed_passkeys in {site.config.policy}"
        yield SiteFinding("who may approve", "note", "nobody: what needs a person's yes is refused", mend)


def _plugin(site: Installation, loaded: LoadedPolicy | None) -> Iterator[SiteFinding]:
    path = site.config.plugin
    if loaded is None:
        yield SiteFinding(str(path), "not known", "what it should say depends on the policy")
        return
    one = site_layout.plugin(site.config, loaded)
    found = _owned(site, one)
    if found.outcome == "ok":
        found = SiteFinding(str(path), "ok", f"{one.rights}, the same as site.toml and the policy make")
    yield found


def _program() -> Iterator[SiteFinding]:
    """What the service runs must be nobody's to change, and its account must reach it."""
    package = Path(slurm_agent_tools.__file__).parent
    loose = None
    for path in (Path(sys.executable), package / "__init__.py"):
        try:
            site_config.of_root_alone(path)
        except AgentToolsError as error:
            loose = error
    closed = [place for place in package.parents if not place.stat().st_mode & stat.S_IXOTH]
    if loose is not None:
        yield SiteFinding("program", "wrong", loose.message, loose.hint)
    elif closed:
        yield SiteFinding(
            "program", "wrong", f"{closed[0]} is closed to the account", "install it in /opt, for instance"
        )
    else:
        yield SiteFinding("program", "ok", f"{sys.executable}: root's alone")


def _socket(site: Installation, name: str, path: Path) -> Iterator[SiteFinding]:
    if silent := _answers(site, name, path):
        yield from silent
        return
    open_to_all = path.lstat().st_mode & 0o666 == 0o666
    says = f"{path} takes connections" + ("" if open_to_all else ", but not of every user")
    yield SiteFinding(name, "ok" if open_to_all else "wrong", says, f"chmod 0666 {path}")


def _answers(site: Installation, name: str, path: Path) -> list[SiteFinding]:
    """What is wrong where nobody listens; else nothing."""
    try:
        with closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
            connection.settimeout(_WAIT)
            connection.connect(str(path))
    except OSError as error:
        mend = site_layout.by_hand(site.config, site.place)
        mend = (
            "systemctl status slurm-agent-site.socket" if site_layout.systemd_runs(site.config, site.machine) else mend
        )
        return [SiteFinding(name, "wrong", f"{path} does not answer: {error.strerror or error}", mend)]
    return []


def _page(site: Installation) -> Iterator[SiteFinding]:
    """The page's socket, which is the web server's affair alone: whoever else reaches it can keep people from it."""
    path, group = site.config.page_socket, site.config.page_group
    if group is None:
        for one in _socket(site, "page", path):
            says, mend = f"{one.says}, of every local user", "page_group = the web server's group, in site.toml"
            yield one if one.outcome != "ok" else SiteFinding("page", "note", says, mend)
        return
    try:
        found = path.lstat()
    except OSError:
        yield from _socket(site, "page", path)
        return
    if (found.st_gid, stat.S_IMODE(found.st_mode)) != (site.machine.group(group), 0o660):
        says, mend = f"{path} is not for the group {group} alone", f"chgrp {group} {path}; chmod 0660 {path}"
        yield SiteFinding("page", "wrong", says, mend)
    elif not os.access(path, os.W_OK):
        yield SiteFinding("page", "not known", f"only {group} and root reach {path}")
    else:
        yield from _answers(site, "page", path) or [SiteFinding("page", "ok", f"{path} takes connections of {group}")]


# --- The controller's view ----------------------------------------------------------------------------------------


def _controller(site: Installation) -> Iterator[SiteFinding]:
    told = _configuration(site)
    if told is None:
        yield SiteFinding("controller", "not known", "scontrol show config does not answer here")
        return
    plugins = told.get("jobsubmitplugins", "")
    names = [name.removeprefix("job_submit/") for name in re.split(r"[,\s]+", plugins.lower()) if name]
    last = names[-1:] == ["lua"]
    why = ": what a later one writes into a job nobody judges" if "lua" in names and not last else ""
    line = (
        f"JobSubmitPlugins=lua, the last one, in slurm.conf, then: scontrol reconfigure (it says {plugins or 'none'})"
    )
    yield SiteFinding("controller", "ok" if last else "wrong", f"JobSubmitPlugins={plugins}{why}", line)
    user = told.get("slurmuser", "").partition("(")[0]
    if user and user != site.config.slurm_user:
        yield SiteFinding(
            "SlurmUser", "wrong", f"is {user}, not {site.config.slurm_user}", "write slurm_user in site.toml"
        )
    conf = told.get("slurm_conf", "")
    if conf and Path(conf).parent != site.config.plugin.parent:
        says = f"{conf} is the controller's, and {site.config.plugin} does not lie beside it"
        yield SiteFinding("plugin's folder", "wrong", says, "write plugin in site.toml")
    if "jobs" in told.get("privatedata", "").lower():
        mend = f"sacctmgr add user {site.config.account} account=root adminlevel=operator"
        yield SiteFinding("PrivateData", "wrong", "hides the users' jobs from the service, which counts them", mend)
    enforced = told.get("accountingstorageenforce", "")
    if (site.config.agent_accounts or site.config.exempt_accounts) and "associations" not in enforced:
        says = f"AccountingStorageEnforce={enforced or 'none'}: every user may name any account"
        yield SiteFinding("accounts", "wrong", says, "AccountingStorageEnforce=associations in slurm.conf")
    yield from _past_tickets(told)
    yield from site_cluster.partitions(site, told.get("jobdefaults", ""))
    if told.get("accountingstoragetype", "").endswith("slurmdbd"):
        cluster = told.get("clustername", "")
        yield from site_cluster.associations(site, cluster, qos_counts="qos" in enforced)
    yield trial(site)


_AGAIN = "a job that ends so runs again under its ticket, which the plugin is not asked for"

_WHOLE = "--core-spec and --thread-spec give a job whole nodes, which the plugin is told from 26.05 on"

_UNTOLD = "the plugin is told of those of partitions alone; write it with these, as with PartitionName=DEFAULT"

_PAST = {
    "RequeueExit": _AGAIN, "RequeueExitHold": _AGAIN, "AllowSpecResourcesUsage": _WHOLE, "MaxMemPerCPU": _UNTOLD,
}  # fmt: skip


def _past_tickets(told: dict[str, str]) -> Iterator[SiteFinding]:
    """What slurm.conf gives to jobs past the ceilings of their tickets."""
    for name, why in _PAST.items():
        value = told.get(name.lower(), "")
        if value.lower() not in {"", "no", "0", "unlimited"}:
            mend = f"take {name} out of slurm.conf, then: scontrol reconfigure"
            yield SiteFinding(name, "wrong", f"is {value}: {why}", mend)
    if "forcerequeueonfail" in told.get("prologflags", "").lower():
        why = "a job whose owner says that its start failed runs again under its ticket (24.11, 26.05)"
        yield SiteFinding("PrologFlags", "wrong", f"have ForceRequeueOnFail: {why}", "take it out of PrologFlags")
    kinds = told.get("selecttypeparameters", "")
    if "ENFORCE_BINDING_GRES" in kinds.upper():
        why = "Slurm's commands ask so for every job, which then takes more CPUs than it shows, and is refused"
        yield SiteFinding("SelectTypeParameters", "wrong", f"is {kinds}: {why}", "take ENFORCE_BINDING_GRES out of it")
    if "CR_SOCKET" in kinds.upper():
        why = (
            "a job gets whole sockets, with the memory of all their CPUs, and the plugin counts those that it asks for"
        )
        mend = "SelectTypeParameters=CR_Core_Memory in slurm.conf"
        yield SiteFinding("SelectTypeParameters", "wrong", f"is {kinds}: {why}", mend)


def _configuration(site: Installation) -> dict[str, str] | None:
    """The controller's own settings, by their names in small letters."""
    with suppress(OSError):
        told = site_cluster.answer(site, (), scontrol.config_argv())
        if told.exit_code == 0:
            rows = (line.partition("=") for line in told.stdout.decode(errors="replace").splitlines())
            return {name.strip().lower(): value.strip().replace("(null)", "") for name, _, value in rows}
    return None
