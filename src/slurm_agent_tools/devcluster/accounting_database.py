"""The accounting of the cluster: its database, and the users, accounts and qualities of service in it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from slurm_agent_tools.devcluster import config_files, slurm_daemons
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, is_root, me
from slurm_agent_tools.devcluster.folders import give, write

USERS = ("researcher", "labmate")

_QUALITIES = (
    ["add", "qos", "scavenger", "Priority=1", "PreemptMode=cancel"],
    ["add", "qos", "high", "Priority=100", "Preempt=scavenger"],
    ["add", "qos", "short", "MaxWall=00:05:00", "MaxJobsPerUser=2", "Priority=50"],
)


async def database(cluster: Cluster) -> None:
    """Make the database if there is none, start it, and let Slurm's user in."""
    place = cluster.folder / "db"
    made = place / "made"
    if not made.exists():
        try:
            await _make(cluster)
        except DevclusterError:  # seen now and then while another cluster was made beside it
            await _make(cluster)
        made.touch()
    await slurm_daemons.start(cluster, "mariadbd")
    await slurm_daemons.ready(cluster, "mariadbd")
    user = f"'{config_files.owner()}'@'localhost'"
    statements = (
        "CREATE DATABASE IF NOT EXISTS slurm_acct_db; "
        f"CREATE USER IF NOT EXISTS {user} IDENTIFIED VIA unix_socket; "
        f"GRANT ALL ON slurm_acct_db.* TO {user};"
    )
    await _done(cluster, ["mariadb", "--no-defaults", "-S", f"{place}/mysqld.sock", "-e", statements])


async def last_job(cluster: Cluster) -> int:
    """The highest number of a job that the accounting of a workstation knows; 0 where there was none."""
    query = "SELECT COALESCE(MAX(id_job), 0) FROM slurm_acct_db.workstation_job_table"
    argv = ["mariadb", "--no-defaults", "-S", f"{cluster.folder}/db/mysqld.sock", "-N", "-B", "-e", query]
    text = await _done(cluster, argv)
    return int(text) if text.strip().isdigit() else 0


async def daemon(cluster: Cluster) -> None:
    """Start slurmdbd; a second time where it gave up on the database just made, as 26.05 now and then does."""
    for last in (cluster.release is None, True):
        await slurm_daemons.start(cluster, "slurmdbd")
        try:
            await slurm_daemons.ready(cluster, "slurmdbd")
        except DevclusterError:
            if last:
                raise
        else:
            return


def _scratch(cluster: Cluster) -> Path:
    return cluster.folder / "db" / "scratch"


async def _make(cluster: Cluster) -> None:
    place = cluster.folder / "db"
    if place.exists():  # an earlier run was ended while it made the database
        shutil.rmtree(place)
    for path, mode in ((place, 0o755), (place / "data", 0o700), (_scratch(cluster), 0o700)):
        path.mkdir(mode=mode, exist_ok=True)
        path.chmod(mode)
        give(path, "mysql")
    whose = "--user=mysql" if is_root() else f"--auth-root-socket-user={me()}"
    await _done(
        cluster,
        ["mariadb-install-db", "--no-defaults", "--auth-root-authentication-method=socket", whose,
         f"--datadir={place}/data", "--skip-test-db"],
        {"TMPDIR": str(_scratch(cluster))},  # temporary tables of two databases must not meet
    )  # fmt: skip


async def members(cluster: Cluster) -> None:
    """Enter qualities of service, accounts and users, unless that was done."""
    stamp = cluster.folder / "db" / "members"
    if stamp.exists():
        return
    claimed = cluster.machine is None
    users = list(USERS) if claimed and is_root() else [cluster.user]
    file = write(
        cluster, "members.cfg", config_files.associations([one for one in users if one != "root"], cluster.name)
    )
    for words in _QUALITIES if claimed else ():
        await _manage(cluster, words)
    if not is_root():
        # `load` refuses a user whom the accounting does not know.
        await _manage(cluster, ["add", "cluster", cluster.name])
        await _manage(cluster, ["add", "user", me(), "Account=root", "AdminLevel=Administrator"])
    await _manage(cluster, ["load", str(file)])
    stamp.touch()


async def _manage(cluster: Cluster, words: list[str]) -> None:
    # A run that was killed half-way may have entered this already; sacctmgr then says so and fails.
    ended = await slurm_daemons.call(cluster, ["sacctmgr", "-i", *words], 60)
    text = (ended.stdout + ended.stderr).decode(errors="replace")
    if ended.exit_code != 0 and "already exist" not in text.lower() and "nothing new added" not in text.lower():
        raise DevclusterError(f"sacctmgr {' '.join(words)} failed:\n{text.strip()}")


async def _done(cluster: Cluster, argv: list[str], more: Mapping[str, str] | None = None) -> str:
    ended = await slurm_daemons.call(cluster, argv, 120, more)
    if ended.exit_code != 0:
        tail = (ended.stdout + ended.stderr).decode(errors="replace").strip().splitlines()[-15:]
        raise DevclusterError("\n".join([f"{argv[0]} failed:", *tail]))
    return ended.stdout.decode(errors="replace")
