"""Random batch scripts and command lines: every option that this version of sbatch has, in every spelling it reads."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from slurm_agent_tools.models.sbatch_options import SHORT, TABLE

VERSION = (22, 5)
ROWS = {row.spelled: row for row in TABLE if row.since <= VERSION < row.until}
FLAGS = {row.spelled: flag for flag, row in SHORT.items()}

_counts = st.builds("{}{}".format, st.sampled_from(["", "", "", "+", "0", " "]), st.integers(1, 4096))
_sizes = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "", "+", " "]),
    st.integers(0, 5000),
    st.sampled_from(["", "K", "k", "KB", "M", "mb", "G", "g", "GB", "T", "tb"]),
)
_two = st.integers(0, 99)
_times = st.one_of(
    st.builds("{}".format, st.integers(0, 20000)),
    st.builds("{}:{}".format, _two, _two),
    st.builds("{}:{:02d}:{}".format, _two, _two, _two),
    st.builds("{}-".format, st.integers(1, 9)),
    st.builds("{}-{}".format, _two, _two),
    st.builds("{}-{}:{}".format, _two, _two, _two),
    st.builds("{}-{}:{}:{}".format, _two, _two, _two, _two),
    st.sampled_from(["UNLIMITED", "infinite", "Unlimited", "-1"]),
)
_nodes = st.one_of(
    _counts,
    st.integers(1, 50).flatmap(lambda low: st.integers(low, 99).map(lambda high: f"{low}-{high}")),
    st.sampled_from(["1k", "2K", "1k-2k"]),
)
_types = st.sampled_from(["a100", "h100", "nvidia_h100_80gb_hbm3_3g.40gb", "A-1"])
_gpus = st.one_of(_counts.filter(str.isdecimal), _types, st.builds("{}:{}".format, _types, st.integers(1, 16)))
_gpu_lists = st.one_of(_gpus, st.just("a100:2,h100:1"), st.just("0"))
_gres = st.one_of(
    st.builds("{}gpu:{}".format, st.sampled_from(["", "gres:"]), _gpus),
    st.sampled_from(["gpu", "none", "gpu:0", "gpu:1,gpu:2", "lustre:1,gpu:2", "gpu:a100:1,gpu:h100:2", "gpu:1k"]),
)
_arrays = st.one_of(
    st.builds("0-{}".format, st.integers(0, 500)),
    st.builds("0-{}:{}%{}".format, st.integers(0, 500), st.integers(1, 9), st.integers(0, 9)),
    st.sampled_from(["1,3,5-7", "[1-9]%2", "[0-9%3]", "7"]),
)
_texts = st.text(st.sampled_from("abcXYZ019 \t'\"\\#:%=,.;$-_/äé€"), min_size=1, max_size=20)
_paths = st.sampled_from(["logs/%x-%j.out", "/dev/null", "./a b", "none", "x//y", "%A_%a", "~/out", ".."])

KINDS: dict[str, SearchStrategy[str]] = {
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu", "tmp"), _sizes),
    **dict.fromkeys(("time", "time-min"), _times),
    **dict.fromkeys(
        (
            "ntasks", "ntasks-per-node", "tasks-per-node", "ntasks-per-gpu", "ntasks-per-core", "ntasks-per-socket",
            "cpus-per-task", "cpus-per-gpu", "mincpus", "sockets-per-node", "cores-per-socket", "threads-per-core",
        ),
        _counts,
    ),
    **dict.fromkeys(("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"), _gpu_lists),
    **dict.fromkeys(
        ("comment", "job-name", "account", "qos", "wckey", "constraint", "prefer", "licenses", "mail-user", "partition",
         "reservation", "mcs-label", "network", "batch", "bb", "dependency", "container", "context", "export"),
        _texts,
    ),
    **dict.fromkeys(("output", "error", "input", "chdir"), _paths),
    "nodes": _nodes,
    "gres": _gres,
    "array": _arrays,
    "extra-node-info": st.sampled_from(["2", "2:8", "2:8:1", "*:8", "1-2:3", "2:*:1"]),
    "nodelist": st.sampled_from(["n1", "n[1-2]", "n1,n2,m[01-03]"]),
    "exclude": st.sampled_from(["n1", "n[1-2]"]),
    "nice": st.integers(-100, 9999).map(str),
    "priority": st.integers(1, 9999).map(str),
    "core-spec": st.integers(0, 9).map(str),
    "thread-spec": st.integers(1, 9).map(str),
    "wait-all-nodes": st.sampled_from(["0", "1"]),
    "switches": st.sampled_from(["1", "2@10", "3@1:00:00"]),
    "signal": st.sampled_from(["USR1", "B:USR1@300", "10", "sigterm@60", "R:TERM", "RB:12@5"]),
    "mail-type": st.sampled_from(["ALL", "END,FAIL", "begin", "NONE", "BEGIN,END,FAIL,TIME_LIMIT_80"]),
    "open-mode": st.sampled_from(["append", "truncate"]),
    "hint": st.sampled_from(["compute_bound", "memory_bound", "nomultithread", "multithread"]),
    "distribution": st.sampled_from(["block", "cyclic:block", "block:cyclic:fcyclic"]),
    "gres-flags": st.sampled_from(["enforce-binding", "disable-binding"]),
    "kill-on-invalid-dep": st.sampled_from(["yes", "no"]),
    "begin": st.sampled_from(["now+60", "2030-01-01", "2030-01-01T12:00"]),
    "deadline": st.just("2031-01-01"),
    "delay-boot": st.sampled_from(["3", "10"]),
    "gpu-bind": st.sampled_from(["none", "closest", "single:1"]),
    "gpu-freq": st.sampled_from(["low", "high"]),
    "cpu-freq": st.sampled_from(["high", "low-high:performance"]),
    "mem-bind": st.sampled_from(["none", "local"]),
    "profile": st.sampled_from(["none", "task", "all"]),
    "acctg-freq": st.sampled_from(["task=60", "30"]),
    "power": st.just("level"),
    "exclusive": st.sampled_from(["", "user", "mcs"]),
    "no-kill": st.sampled_from(["", "off"]),
    "propagate": st.sampled_from(["", "NONE", "NPROC,CORE"]),
    "wrap": st.just("true"),
}  # fmt: skip
# Given twice as often: the size of a job rests on them.
_SIZED = (
    "mem", "mem-per-cpu", "mem-per-gpu", "time", "gpus", "gres", "gpus-per-node", "gpus-per-task", "nodes", "ntasks",
    "array", "cpus-per-task", "nodelist", "mincpus", "requeue", "no-requeue", "exclusive",
)  # fmt: skip
_FLAG_OPTIONS = tuple(
    name for name, row in ROWS.items() if row.takes == "nothing" and name not in {"quiet", "usage", "help", "version"}
)
_NAMES = st.sampled_from([*KINDS, *_SIZED, *_SIZED, *_FLAG_OPTIONS, "nice"])
BAD = st.sampled_from(["1.5G", "16Gi", "x", "-1", "0x10", "16 G", "1:2:3:4", "4k5", "-", "1e3", "99-1", "0", "4 "])
WRONG = st.sampled_from(
    ["gpu", "--pty", "-y", "--hold=1", "--me=1G", "--gpu=1", "--no=1", "-", "-- x", "--mem", "-J 'open", ": x", '-J "a']
)
_READ = frozenset(name for name, kind in KINDS.items() if kind in (_sizes, _times, _counts, _gpu_lists, _nodes))


def _prefixes(name: str) -> list[str]:
    """What getopt_long takes for this option in this version."""
    others = [word for word, row in ROWS.items() if row.name != ROWS[name].name]
    whole = [name[:length] for length in range(1, len(name))]
    return [name, *(word for word in whole if word not in ROWS and not any(one.startswith(word) for one in others))]


PREFIXES = {name: _prefixes(name) for name in ROWS}


@dataclass(frozen=True)
class Spelled:
    """An option and its words: `--name value` is two."""

    name: str
    words: tuple[str, ...]


@st.composite
def spelled(draw: DrawFn, *, early: bool, bad: bool) -> Spelled:
    name = draw(_NAMES.filter(lambda word: early or word not in {"wrap", "verbose", "test-only"}))
    row = ROWS[name]
    kind = BAD if bad and name in _READ else KINDS.get(name)
    value = None if kind is None else draw(kind)
    flag = FLAGS.get(name)
    if flag is not None and draw(st.booleans()):
        if row.takes == "value" and draw(st.booleans()):
            return Spelled(name, (f"-{flag}", value or ""))
        return Spelled(name, (f"-{flag}{value or ''}",))
    written = f"--{draw(st.sampled_from(PREFIXES[name])) if draw(st.booleans()) else name}"
    if value is None or (row.takes == "optional" and not value):
        return Spelled(name, (written,))
    if row.takes == "value" and draw(st.booleans()):
        return Spelled(name, (written, value))
    return Spelled(name, (f"{written}={value}",))


@st.composite
def quoted(draw: DrawFn, word: str) -> str:
    """One word as it may stand in a directive, so that it comes out as it is."""
    if not word:
        return '""'
    style = draw(st.sampled_from(["plain", "plain", "single", "double", "part"]))
    if style == "plain" and not any(sign in word for sign in " \t"):
        text = "".join(f"\\{sign}" if sign in "'\"\\#" else sign for sign in word)
        return f"\\{text}" if text.startswith(":") else text
    if style == "part":
        cut = draw(st.integers(0, len(word)))
        return _inside(word[:cut], '"') + _inside(word[cut:], "'")
    return _inside(word, "'" if style == "single" else '"')


def _inside(text: str, quote: str) -> str:
    escaped = text.replace("\\", "\\\\").replace(quote, f"\\{quote}")
    return f"{quote}{escaped}{quote}" if text else ""


_BLANKS = st.sampled_from([" ", " ", " ", "  ", "\t", " \t ", "\v", "\f", "\r "])
_ENDS = st.sampled_from(["", "", "", " ", " # comment --mem=5G", "#glued", " \\", "\t"])
_BETWEEN = st.sampled_from(
    ["", "# a comment", "   ", "\t# x", "##SBATCH --mem=1", " #SBATCH --nodes=7", "#sbatch -n9", "#SBATCH", "#!/bin/sh"]
)
_BODY = st.sampled_from(["true", ":", "set -e", "cat <<EOF", "x=1"])


@st.composite
def line(draw: DrawFn, found: list[Spelled]) -> str:
    text = draw(st.sampled_from(["#SBATCH", "#SBATCH", "#SBATCH", "#SLURM"]))
    blank = draw(_BLANKS)
    for option in found:
        for word in option.words:
            text += blank + draw(quoted(word))
            blank = draw(_BLANKS)
    return text + draw(_ENDS)


@dataclass(frozen=True)
class Asked:
    """A script and the options of sbatch's command line."""

    script: bytes
    words: tuple[str, ...]


@st.composite
def requests(draw: DrawFn) -> Asked:
    """Mostly readable; one in five has something in it that nobody can read."""
    broken = draw(st.integers(0, 4)) == 0
    lines = ["#!/bin/bash"]
    for _ in range(draw(st.integers(0, 5))):
        bad = broken and draw(st.booleans())
        lines.append(draw(line(draw(st.lists(spelled(early=True, bad=bad), min_size=1, max_size=3)))))
        lines += draw(st.lists(_BETWEEN, max_size=1))
    if broken and draw(st.booleans()):
        lines.append(f"#SBATCH {draw(WRONG)}")
    lines += [draw(_BODY), "#SBATCH --mem=77G --gpus=8"]
    words = draw(st.lists(spelled(early=False, bad=False), max_size=3))
    return Asked(("\n".join(lines) + "\n").encode(), tuple(word for one in words for word in one.words))


_FEW = st.integers(1, 4)
_GPU_WAYS = st.one_of(
    st.just(()),
    st.builds(lambda count: (f"--gpus={count}",), st.integers(1, 4)),
    st.builds(lambda count: (f"--gpus=a100:{count}",), st.integers(1, 3)),
    st.builds(lambda count: (f"--gres=gpu:{count}",), st.integers(1, 4)),
    st.builds(lambda count: (f"--gpus-per-node={count}",), st.integers(1, 4)),
    st.builds(lambda count, tasks: (f"--gpus-per-task={count}", f"-n{tasks}"), st.integers(1, 2), st.integers(1, 3)),
    st.builds(lambda count, each: (f"--gpus={count}", f"--gpus-per-task={each}"), st.integers(1, 4), st.integers(1, 2)),
    st.builds(lambda count, each: (f"--gpus={count}", f"--gpus-per-node={each}"), st.integers(1, 4), st.integers(1, 2)),
    st.builds(lambda count, each: (f"--gpus={count}", f"--ntasks-per-gpu={each}"), st.integers(1, 3), _FEW),
    st.builds(lambda count, tasks: (f"--ntasks-per-gpu={count}", f"-n{tasks}"), st.integers(1, 2), _FEW),
    st.builds(lambda count: (f"--gpus-per-socket={count}", "--sockets-per-node=2"), st.integers(1, 2)),
)
_MEMORY = st.one_of(
    st.just(()),
    st.builds(lambda size: (f"--mem={size}M",), st.integers(100, 9000)),
    st.builds(lambda size: (f"--mem-per-cpu={size}M",), st.integers(100, 3000)),
    st.builds(lambda size: (f"--mem-per-gpu={size}M",), st.integers(100, 9000)),
    st.just(("--mem=0",)),
)
_OTHERS = (
    st.builds("-N{}".format, st.sampled_from(["1", "2", "1-2", "2-2", "4"])),
    st.builds("-n{}".format, st.integers(1, 6)),
    st.builds("-c{}".format, _FEW),
    st.builds("--cpus-per-gpu={}".format, _FEW),
    st.builds("--ntasks-per-node={}".format, _FEW),
    st.builds("--mincpus={}".format, st.integers(1, 12)),
    st.builds("--ntasks-per-socket={}".format, st.integers(1, 2)),
    st.builds("--ntasks-per-core={}".format, st.just(1)),
    st.builds("-B{}".format, st.sampled_from(["1:2", "2:3:1", "2"])),
    st.just("--exclusive"),
    st.just("--overcommit"),
    st.just("--spread-job"),
    st.just("--use-min-nodes"),
)


@st.composite
def sized(draw: DrawFn, *, whole: bool = True) -> tuple[str, ...]:
    """Options that make a job of some size; not all of them go together. `whole`: also such as take whole nodes."""
    words = [*draw(_GPU_WAYS), *draw(_MEMORY)]
    words += [draw(kind) for kind in draw(st.lists(st.sampled_from(_OTHERS), max_size=3, unique=True))]
    return tuple(word for word in words if whole or word not in {"--exclusive", "--mem=0", "-N4"})
