"""Which commands are a job's work, which only ask whether something is ready, and what is started again."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.programs.program import Program
from slurm_agent_tools.programs.shell_tree import calls, flatten, words_of
from slurm_agent_tools.programs.shell_words import KnownVariables, Node, fold, line_of
from slurm_agent_tools.programs.wrapped_command import SHELLS, name_of, starts

# Looking, waiting, printing and fetching: to repeat these is no retry of a job's work.
_IDLE_WORDS = """
[ [[ test : true false read sleep kill pgrep ps grep egrep fgrep rg squeue sacct sinfo sstat scontrol ls stat nc
ncat curl wget rsync scp ping nslookup host dig lsof ss netstat pg_isready redis-cli mysqladmin mongo mongosh
nvidia-smi mkdir ln flock lockfile echo printf cat tail head wc awk sed cut tr date expr let export set unset
local declare cd pushd popd break continue exit return shift wait trap touch rm mv cp find which type command
module pip conda mamba git tar unzip gzip cmp diff md5sum sha256sum seq basename dirname hostname jq df du free
uptime tee sync chmod bc source . eval top htop vmstat iostat mpstat pidstat sar dstat pmap numastat lscpu sensors
nvtop gpustat rocm-smi amd-smi xpu-smi dcgmi nvitop w who last dmesg printenv sha1sum readlink realpath rmdir
gdown aria2c axel lftp sftp gsutil azcopy rclone s3cmd s5cmd kaggle globus prefetch fasterq-dump ascp youtube-dl yt-dlp
"""

_IDLE = frozenset(_IDLE_WORDS.split())

# Programs that do other things, too: with one of these words behind their name they only fetch, send or install.
_FETCHING = {
    "aws": "s3 s3api",
    "gcloud": "storage auth",
    "modelscope": "download upload",
    "dvc": "pull push fetch status",
    "uv": "pip sync add lock",
    "poetry": "install lock",
    "npm": "ci install",
    "docker": "pull push login info ps",
    "podman": "pull push login info ps",
    "apptainer": "pull push",
    "singularity": "pull push",
    "ollama": "pull list ps",
    "datalad": "get clone update",
    "oras": "pull push login",
    "gh": "release repo run auth",
    "mc": "cp mirror get put ls",
    "wandb": "sync login offline online",
    "hf": "download upload upload-large-folder auth cache env version",
    "huggingface-cli": "download upload upload-large-folder login whoami scan-cache env version",
}

_OBSERVING_WORDS = "monitor monitoring usage stat stats log logger metrics track tracker heartbeat upload backup sync"


def is_work(words: Sequence[str]) -> bool:
    """Whether a command is more than looking, waiting, printing or fetching."""
    if not words:
        return False
    own = list(starts(words))
    last = name_of(words[own[-1]])
    if last == "eval":  # of a text that can be read; what a variable holds is looked at elsewhere
        return is_work(" ".join(words[own[-1] + 1 :]).split())
    return last not in _IDLE and not any(_only_fetches(words[start:], last) for start in own)


def _only_fetches(words: Sequence[str], last: str) -> bool:
    """`aws s3 sync`, `apptainer pull`; and `python download_data.py`, as far as the names tell."""
    known = _FETCHING.get(name_of(words[0]))
    if known is not None:
        return next((word for word in words[1:] if not word.startswith("-")), "") in known.split()
    if _INTERPRETERS.fullmatch(name_of(words[0])) and words[1:2] == ["-c"]:
        return _text_fetches("".join(words[2:3]))
    parts = _parts(words) if name_of(words[0]) == last and not {"-c", "-e"} & set(words) else []
    return bool({"download", "downloader", "fetch", "prefetch"} & set(parts)) and _WORK.isdisjoint(parts)


def _text_fetches(text: str) -> bool:
    """A one-liner of Python that imports what fetches, and nothing that could work."""
    modules = _imports(text)
    return (
        not _FETCHERS.isdisjoint(modules)
        and modules <= _FETCHERS | _HARMLESS
        and re.search(r"download|urlretrieve|load_dataset|fetch", text) is not None
        and _STARTING.search(text) is None
    )


def observes(words: Sequence[str]) -> bool:
    """Whether a command looks at the work of others, or sends away what came of it, as far as its name tells."""
    parts = _parts(words)
    return not _OBSERVING.isdisjoint(parts) and _WORK.isdisjoint(parts)


def work_of(words: list[str]) -> tuple[str, ...]:
    """What makes two calls the same work: the program and its script, wherever they stand."""
    tail = words[list(starts(words))[-1] :]
    script = next((word for word in tail[1:] if not word.startswith("-")), "")
    return (name_of(tail[0]).rstrip("0123456789."), script)


# --- Commands that ask whether something is ready, so that a loop around them waits, or goes on, and does not retry ---


_QUESTION_WORDS = """
is are has have check checks ready poll ping wait status health healthy alive probe exists converged finished
complete completed done
"""

_WORK_WORDS = "train run start submit launch fit solve main exec simulate work resume"
_TIDYING_WORDS = "clean cleanup tidy reset restore backup notify mail report recover restart retry rescue"
_ASKING_WORDS = "status list ls info ping ready poll health healthcheck version ps show alive probe"
_QUESTIONS = frozenset(_QUESTION_WORDS.split())
_WORK = frozenset(_WORK_WORDS.split())
_TIDYING = frozenset(_TIDYING_WORDS.split())
_OBSERVING = frozenset(_OBSERVING_WORDS.split())
_ASKING = frozenset(_ASKING_WORDS.split())
_LAUNCHERS = frozenset({"srun", "mpirun", "mpiexec", "torchrun", "accelerate", "deepspeed", "horovodrun"})

_INTERPRETERS = re.compile(
    r"i?python[\d.]*|pypy[\d.]*|perl|ruby|node|Rscript|R|julia|make|snakemake|nextflow|uv|torchrun"
)

_CONNECTS = frozenset({"socket", "urllib", "http", "requests", "httpx", "redis", "zmq", "psycopg2", "pymongo"})
_HARMLESS = _CONNECTS | {"sys", "os", "time", "ssl", "json", "pathlib"}

_FETCHERS = frozenset({"huggingface_hub", "datasets", "nltk", "gdown", "urllib", "requests", "kagglehub", "modelscope"})
_STARTING = re.compile(r"\b(?:system|popen|exec\w*|eval|spawn\w*|fork|import_module|__import__|open)\s*\(")


def asks_readiness(words: Sequence[str], *, silent: bool = False, started: Collection[str] = ()) -> bool:
    """Whether a command is a question. `silent`: its output is thrown away; `started`: what runs in the background."""
    if not words or _launched(words):
        return False
    tail = list(words[list(starts(words))[-1] :])
    name = name_of(tail[0])
    if _INTERPRETERS.fullmatch(name) or name in SHELLS:
        return _script_asks(tail)
    if "/" in tail[0] or "." in name:
        return _questions(name)
    plain = [word for word in tail[1:] if not word.startswith("-")]
    if name in started:
        return not _ASKING.isdisjoint(word.lstrip("-") for word in tail[1:])
    return _questions(name) or (silent and not _ASKING.isdisjoint(plain[:2]) and _WORK.isdisjoint(plain))


def makes_progress(asked: Sequence[Sequence[str]], done: Sequence[Sequence[str]]) -> bool:
    """Whether the work of a loop's body may be what brings its condition about, as far as names tell.

    No pause, which stands between two tries; no launcher, training or run as the condition; more than tidying up.
    """
    pauses = any(name_of(words[0]) == "sleep" for words in done)
    heavy = any(_launched(words) or not _WORK.isdisjoint(_parts(words)) for words in asked)
    return (
        not pauses
        and not heavy
        and any(_TIDYING.isdisjoint(_parts(words)) for words in done if name_of(words[0]) != "sleep")
    )


def _launched(words: Sequence[str]) -> bool:
    return any(name_of(words[start]) in _LAUNCHERS for start in starts(words))


def _parts(words: Sequence[str]) -> list[str]:
    """The lower-case words in the names of a program and its script."""
    tail = words[list(starts(words))[-1] :]
    script = next((name_of(word) for word in tail[1:] if not word.startswith("-")), "")
    return re.findall(r"[a-z]+", f"{name_of(tail[0])} {script}".lower())


def _questions(name: str) -> bool:
    """`poll_ready.sh`, `is_converged.py`, and not `train_check.sh`, where the question is not all."""
    parts = re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return not _QUESTIONS.isdisjoint(parts) and _WORK.isdisjoint(parts)


def _script_asks(tail: Sequence[str]) -> bool:
    for index, word in enumerate(tail[1:], start=1):
        if word == "-c":
            return name_of(tail[0]) not in SHELLS and _connects("".join(tail[index + 1 : index + 2]))
        if not word.startswith("-"):
            return _questions(name_of(word))
    return False


def _connects(text: str) -> bool:
    """A text of Python that imports what connects, and nothing that could work."""
    modules = _imports(text)
    return not _CONNECTS.isdisjoint(modules) and modules <= _HARMLESS and _STARTING.search(text) is None


def _imports(text: str) -> set[str]:
    """The packages that a short text of Python imports."""
    imported = re.findall(
        r"\bfrom\s+([\w.]+)|(?<!\w )\bimport\s++([\w., ]+)", re.sub(r"(from\s+\S+)\s+import.*", r"\1", text)
    )
    names = ",".join("".join(pair) for pair in imported).split(",")
    return {name.strip().partition(" ")[0].partition(".")[0] for name in names}


def only_waits(node: Node, known: KnownVariables, works: Callable[[Sequence[str]], bool]) -> bool:
    """Whether all that a loop does besides looking and sleeping is to ask."""
    found = False
    for place in flatten([node.get("Cond", []), node.get("Do", [])]):
        if place.node.get("Type") != "CallExpr" or not place.node.get("Args"):
            continue
        words = words_of(place.node, known)
        if not works(words):
            continue
        if not asks_readiness(words, silent=_silent(place.statement or {}, known), started=known.started):
            return False
        found = True
    return found


def _silent(statement: Node, known: KnownVariables) -> bool:
    return any(
        item.get("Op") in {">", "&>", ">&", ">>", "&>>"} and fold(item.get("Word"), known) == "/dev/null"
        for item in statement.get("Redirs", ())
    )


# --- Work that a trap or a watchdog starts again when it has ended ----------------------------------------------------


@dataclass(slots=True)
class Restarts:
    """Work that a trap or a watchdog starts again: judged when the whole text is known."""

    started: Counter[tuple[str, ...]] = field(default_factory=Counter)
    functions: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)  # the work in them
    again: list[tuple[tuple[str, ...], int, int]] = field(default_factory=list)  # work, line, how often it then stands

    def look(self, node: Node, known: KnownVariables) -> None:
        """Note a command, a trap and `pgrep work || work`."""
        kind = node.get("Type")
        if kind == "CallExpr" and node.get("Args"):
            words = words_of(node, known)
            if is_work(words):
                self.started[work_of(words)] += 1
            elif words[0] == "trap" and len(words) > 2 and {"ERR", "EXIT", "0"} & set(words[2:]):
                lines = (line.split() for line in re.split(r"[;&|\n]+", words[1]))
                self.again += [(work_of(line), line_of(node), 1) for line in lines if is_work(line)]
                self.again += [(work, line_of(node), 2) for work in self.functions.get(words[1], ())]
        elif kind == "FuncDecl":
            name = (node.get("Name") or {}).get("Value", "")
            self.functions[name] = [work_of(one) for one in calls(node.get("Body") or {}, known) if is_work(one)]
        elif kind == "BinaryCmd" and node.get("Op") == "||" and _watches(node["X"], known):
            self._restarted(node["Y"], node, known)
        elif kind == "IfClause" and _watches(node.get("Cond", []), known):
            self._restarted(node.get("Then", []), node, known)

    def _restarted(self, branch: object, node: Node, known: KnownVariables) -> None:
        self.again += [(work_of(words), line_of(node), 2) for words in calls(branch, known) if is_work(words)]

    def judge(self, program: Program) -> None:
        """Find what was started before."""
        for work, line, count in self.again:
            if work[1] and self.started[work] >= count:
                program.find("auto-retry", "it starts the same work again when it has ended", line)


def _watches(condition: object, known: KnownVariables) -> bool:
    """pgrep, pidof, `kill -0`: whether something still runs."""
    return any(words[0] in {"pgrep", "pidof"} or words[:2] == ["kill", "-0"] for words in calls(condition, known))
