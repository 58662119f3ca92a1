"""The comment of a job: the token of its submission, and behind a colon the caller's own run id.

No sign in it means anything to Slurm, to a shell or to the table that Slurm prints it in.
"""

from __future__ import annotations

import re

LONGEST = 100

PREFIX = "sat-"

_TOKEN = re.compile(rf"\b{PREFIX}[0-9a-f]{{16}}\b", re.ASCII)

_RUN_ID = re.compile(rf"[A-Za-z0-9._:@/+-]{{1,{LONGEST}}}", re.ASCII)


def plain(run_id: str) -> bool:
    """Whether a run id can stand in a comment: letters, digits and `._:@/+-`, at most 100 of them."""
    return _RUN_ID.fullmatch(run_id) is not None


def build(token: str, run_id: str | None = None) -> str:
    """The comment of a submission. `run_id` is plain."""
    return token if run_id is None else f"{token}:{run_id}"


def token(comment: str | None) -> str | None:
    """The token in a comment, also where a site wrote more around it; the whole of one that we did not write."""
    if comment is None:
        return None
    found = _TOKEN.search(comment)
    return found[0] if found else comment.strip().partition(":")[0]


def ours(comment: str | None) -> bool:
    """Whether a submission of this program wrote it."""
    return (token(comment) or "").startswith(PREFIX)


def run_id(comment: str | None) -> str | None:
    """The run id in a comment, where there is one."""
    return None if comment is None else comment.strip().partition(":")[2] or None
