"""Which commands are a job's work."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.jobscript.wrappers import name_of, starts

# Looking, waiting, printing and fetching: to repeat these is no retry of a job's work.
_IDLE_WORDS = """
[ [[ test : true false read sleep kill pgrep ps grep egrep fgrep rg squeue sacct sinfo sstat scontrol ls stat nc
ncat curl wget rsync scp ping nslookup host dig lsof ss netstat pg_isready redis-cli mysqladmin mongo mongosh
nvidia-smi mkdir ln flock lockfile echo printf cat tail head wc awk sed cut tr date expr let export set unset
local declare cd pushd popd break continue exit return shift wait trap touch rm mv cp find which type command
module pip conda mamba git tar unzip gzip cmp diff md5sum sha256sum seq basename dirname hostname jq df du free
uptime tee sync chmod bc source . eval
"""
_IDLE = frozenset(_IDLE_WORDS.split())


def works(words: Sequence[str]) -> bool:
    """Whether a command is more than looking, waiting, printing or fetching."""
    last = words[list(starts(words))[-1]] if words else ""
    return bool(words) and name_of(last) not in _IDLE


def essence(words: list[str]) -> tuple[str, ...]:
    """What makes two calls the same work: the program and its script, wherever they stand."""
    tail = words[list(starts(words))[-1] :]
    script = next((word for word in tail[1:] if not word.startswith("-")), "")
    return (name_of(tail[0]).rstrip("0123456789."), script)
