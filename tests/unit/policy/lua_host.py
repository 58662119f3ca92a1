"""A Lua in the place of Slurm's controller: loads an exported plugin and asks it about jobs, all in one process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

PROGRAMS = ("lua5.1", "lua5.2", "lua5.3", "lua5.4", "luajit")

VARIANTS = (("lua5.1", "a table"), ("lua5.1", "bit"), ("lua5.2", "bit32"), ("lua5.3", "operators"),
            ("lua5.4", "operators"), ("luajit", "bit"))  # fmt: skip
"""Each Lua that Debian packages, with each arithmetic that it may have: that of 5.1 with and without lua-bitop."""

LATER = "slurm.ESLURM_INVALID_NODE_NAME = 2007 "
"""In front of a plugin: a Slurm later than 22.05."""

HOST = """
local told = {}
slurm = {
  NO_VAL = 4294967294, NO_VAL16 = 65534, NO_VAL64 = 18446744073709551614, INFINITE = 4294967295, SUCCESS = 0, ERROR = -1,
  ESLURM_ACCOUNTING_POLICY = 2050, ESLURM_INVALID_TIME_LIMIT = 2051,
  log_info = function(form, ...) io.stderr:write(string.format(form, ...), "\\n") end,
  log_user = function(form, ...) told[#told + 1] = string.format(form, ...) end,
}
PARTS = {} -- the partitions that the controller shows
local BLANK = {
  bitflags = 0, cpus_per_task = 65534, max_nodes = slurm.NO_VAL, min_cpus = slurm.NO_VAL, min_nodes = slurm.NO_VAL,
  ntasks_per_node = 65534, ntasks_per_tres = 65534, num_tasks = slurm.NO_VAL, pn_min_cpus = 65534,
  pn_min_memory = slurm.NO_VAL64, requeue = 65534, shared = 65534, sockets_per_node = 65534, time_limit = slurm.NO_VAL,
}
local function blank(fields)
  for name, value in pairs(BLANK) do if fields[name] == nil then fields[name] = value end end
  return fields
end
local function tell(code, job)
  local lines = { tostring(code), job.comment or "", job.admin_comment or "", table.concat(told, "\\30") }
  io.write(table.concat(lines, "\\31"), "\\29")
  told = {}
end
function submit(uid, fields) local job = blank(fields); tell(slurm_job_submit(job, PARTS, uid), job) end
function modify(uid, change, record) local job = blank(change); tell(slurm_job_modify(job, record, PARTS, uid), job) end
"""

_ESCAPED = tuple(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:03d}" for byte in range(256))


@dataclass(frozen=True)
class Answer:
    """What the plugin said of one job, and what it made of its comments."""

    code: int
    comment: str
    admin_comment: str
    told: tuple[str, ...]


def run(program: str, text: str, *, bit: bool = True) -> str:
    """The standard output of a Lua program."""
    lua = shutil.which(program)
    assert lua, f"{program} is missing: make check installs it"
    env = {"PATH": os.defpath} | ({} if bit else {"LUA_CPATH": "/nonexistent"})
    done = subprocess.run(
        [lua, "-"], input=text.encode("latin-1"), capture_output=True, env=env, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("latin-1")


def lines(plugin: str, calls: Sequence[str]) -> list[str]:
    """What these statements print, once the plugin is loaded."""
    return run("lua5.1", "\n".join([HOST, f"assert(loadstring({literal(plugin)}))()", *calls])).splitlines()


def literal(value: object) -> str:
    """A Lua expression."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"[{literal(key)}]={literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, bool | None):
        return {True: "true", False: "false", None: "nil"}[value]
    if isinstance(value, int):
        return str(value)
    return _text(str(value))


@lru_cache(maxsize=256)
def _text(value: str) -> str:
    return '"' + "".join(map(_ESCAPED.__getitem__, value.encode("utf-8", "surrogateescape"))) + '"'


def submission(uid: int, **fields: object) -> str:
    """A call that submits a job; `user_id` is `uid` where nothing else is said."""
    return f"submit({uid}, {literal({'user_id': uid, 'user_name': f'user{uid}', **fields})})"


def change(uid: int, record: Mapping[str, object], **fields: object) -> str:
    """A call that changes a job of the same user."""
    job = {"user_id": uid, "user_name": f"user{uid}", **fields}
    known = {"account": "lab", "min_cpus": 1, "job_state": 0, "user_id": uid}
    return f"modify({uid}, {literal(job)}, {literal({**known, **record})})"


def ask(plugin: str, calls: Sequence[str], *, program: str = "lua5.1", silent: int = 0) -> list[Answer]:
    """The answers of one controller that has loaded the plugin to these calls, in their order.

    `silent`: how many of the calls are other statements, which have no answer.
    """
    text = "\n".join([HOST, f"assert((loadstring or load)({literal(plugin)}))()", *calls])
    answers = []
    for told in run(program, text).split("\x1d")[:-1]:
        code, comment, admin_comment, lines = told.split("\x1f")
        answers.append(Answer(int(float(code)), comment, admin_comment, tuple(filter(None, lines.split("\x1e")))))
    assert len(answers) == len(calls) - silent
    return answers
