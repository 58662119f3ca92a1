"""What a reading of a script keeps while it goes on: texts that wait, files asked for, findings."""

from __future__ import annotations

import posixpath
import re
import sys
from collections import Counter, deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from slurm_agent_tools.models.request import Evidence, Finding, JobRequest
from slurm_agent_tools.programs.program import (
    DEVICES,
    NUMBERED,
    NUMBERED_CALL,
    SETS_DEVICES,
    Effort,
    IdleCommand,
    InnerText,
    Level,
    RunFile,
)
from slurm_agent_tools.programs.shell_words import SIGNS, UNKNOWN, Node
from slurm_agent_tools.programs.wrapped_command import SHELLS, name_of

_FLAGS = re.compile(rb"\$\{\([^(){}\s]*\)[^{}\n]*\}|\$\{\.[\w.]+\}")
_USED = re.compile(r"\$\{?!?(\w+)")
_MOST_VALUES = 4  # of a variable that is set around a text, for each of which the text is read
_WHERE = re.compile(r"(?:line )?(\d+):\d+: (.*)", re.DOTALL)


def as_shown(text: str) -> str:
    """A text that every reply can hold: bytes that are no UTF-8 become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def as_told(text: str) -> str:
    """What is told of a finding: a name of thousands of letters, of which there may be hundreds, without its middle."""
    text = text if len(text) <= MAX_TOLD else f"{text[: MAX_TOLD - 250]}...{text[-200:]}"
    return as_shown(text)


def undecodable(data: bytes, path: str) -> list[Evidence]:
    """Options with bytes that are no UTF-8: what sbatch makes of them cannot be compared later."""
    what = "the line holds bytes that are no UTF-8 text"
    found = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.startswith((b"#!", b"#SBATCH", b"#SLURM")) and "\ufffd" in line.decode("utf-8", "replace"):
            found.append(Evidence(path, number, f"{what}: {line.decode('utf-8', 'replace')[:200]}"))
    return found[:MAX_ALIKE]


def as_encoded(text: str) -> bytes:
    """The bytes of a text as they stood in its file, for the parser."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a Python text may spell signs that no file can hold
        return text.encode("utf-8", "replace")


# A key of an associative array that the parser takes for arithmetic: `[/a/b]=`, `${M[a.b]}`, `M[x y]=`.
_KEYS = re.compile(rb"((?<=[(\s])\[|\b\w+\[|\$\{\w+\[)(?=[ ./:@~%+*-]*+\w)([\w ./:@~%+*-]++)(\]\+?=|\](?=[:}]))")
_NO_NAME = re.compile(rb"\W")


def for_bash(text: bytes) -> bytes:
    """A shell text as the parser can read it: without the expansions of zsh and ksh, and with plain keys in arrays.

    `${(%):-%x}` and `${.sh.file}` are errors to bash where it comes to them, so they hide nothing that it would run.
    """
    text = _FLAGS.sub(lambda found: b"${_}".ljust(len(found[0])), text)
    return _KEYS.sub(lambda found: found[1] + _NO_NAME.sub(b"_", found[2]) + found[3], text)


def refused(answer: str) -> tuple[int, str]:
    """(line, why) of the parser's refusal; line 1 where it names none."""
    found = _WHERE.fullmatch(answer)
    return (int(found[1]), found[2]) if found is not None else (1, answer)


# --- What a reading keeps while it goes on: the texts that wait, the files that were asked for, the findings ----------


MAX_ALIKE = 100  # findings of one rule and level
MAX_TOLD = 1000  # signs of one
MAX_IMPORTED_SIGNS = 80_000
MAX_ASKED = 300  # files that are asked for, and bytes of those that are there
MAX_OPENED = 16 * 2**20
_BACKGROUND = re.compile(r"(?m)(?<![&>|<])&(?![&>])\s*(?:$|[\s;)#])")


@dataclass(frozen=True, slots=True)
class NeedShell:
    """Parse this shell text; the answer is its tree, or why there is none. `line` is where it begins in `file`.

    With `offsets` the positions in the tree are places in the text, in bytes, and not lines. `behind`: texts that wait
    to be read as soon as there is an answer.
    """

    text: bytes
    dialect: str
    file: str
    line: int
    offsets: bool = False
    behind: Collection[TextToRead] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class NeedFile:
    """Read this file of the project. The answer is its bytes, None when it is none, or why it cannot be read."""

    path: str
    behind: Collection[TextToRead] = field(default=(), compare=False)


Need = NeedShell | NeedFile

Answer = Node | str | bytes | None


@dataclass(frozen=True, slots=True)
class TextToRead:
    """A text to be read: part of `file`, whose lines are `lines`, from line `line` on."""

    language: str
    content: str
    file: str
    line: int
    lines: Sequence[str]
    depth: int
    args: tuple[str, ...] | None = None  # that the program gets, where they are known
    zero: str | None = None  # its `$0`, where that is not the script

    def evidence(self, line: int) -> Evidence:
        """The line of the file, as it stands there."""
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else ""
        return Evidence(self.file, line, as_shown(text[:300]))


@dataclass(slots=True)
class ReadingState:
    """All that is known so far of one script."""

    script: str
    args: Sequence[str] | None
    folders: list[str]
    home: str = ""  # the folder of the script
    text: str = ""  # of the script itself
    findings: list[Finding] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    settings: dict[str, str] = field(default_factory=dict)
    written: dict[str, tuple[InnerText | None, TextToRead]] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    fetched: list[str] = field(default_factory=list)
    notes: set[str] = field(default_factory=set)
    variables: dict[str, list[str]] = field(default_factory=dict)  # that texts around set, to what is known
    seen: set[tuple[str, str, tuple[str, ...] | None, str | None]] = field(default_factory=set)
    todo: deque[TextToRead] = field(default_factory=deque)
    wanted: deque[tuple[RunFile, TextToRead]] = field(default_factory=deque)
    effort: Effort = field(default_factory=Effort)
    texts: int = 0
    size: int = 0
    counts: Counter[tuple[str, Level]] = field(default_factory=Counter)
    scanned: int = 0
    answers: dict[str, Answer] = field(default_factory=dict)  # of the files that were asked for
    opened: set[tuple[str, str, tuple[str, ...]]] = field(default_factory=set)  # path, by what it is run, with what
    modules: Counter[str] = field(default_factory=Counter)  # of the project, that Python imports: read and asked for
    imported: Effort = field(default_factory=lambda: Effort(signs=MAX_IMPORTED_SIGNS))

    def find(self, rule: str, what: str, place: Evidence, level: Level = "deny") -> None:
        """Note a finding; of many alike, which decide nothing new, the first ones."""
        what = as_told(what)
        self.counts[rule, level] += 1
        if self.counts[rule, level] == MAX_ALIKE:
            what = f"{what}, and there are more lines like it"
        if self.counts[rule, level] <= MAX_ALIKE:
            self.findings.append(Finding(rule, what, place, level))

    def keep(self, idle: IdleCommand, source: TextToRead, offset: int) -> None:
        """Note a command that only waits; another text may run in the background, if the script has anything there."""
        if source.depth > 0 and _BACKGROUND.search(self.text):
            return
        end = ", also when its workers in the background have ended (`wait` ends with them)" if idle.workers else ""
        what = f"it keeps the node and does nothing: {idle.shown}{end}"
        self.find("interactive", what, source.evidence(idle.line + offset), "justify")

    def bases(self) -> list[str]:
        """Folders that relative paths may start from, seen from the project's root, and from the script's folder."""
        return [*self.folders, *(posixpath.join(self.home, folder) for folder in self.folders if self.home)]

    def asked_enough(self) -> bool:
        """Whether no further file is followed."""
        read = sum(len(data) for data in self.answers.values() if isinstance(data, bytes))
        return len(self.answers) >= MAX_ASKED or read > MAX_OPENED


def inherited(state: ReadingState, text: str) -> Iterator[dict[str, str]]:
    """What variables that a text uses are set to around it, for each value that one has; beyond that anything."""
    used = {name: values for name in set(_USED.findall(text)) if (values := state.variables.get(name))}
    for number in range(min(_MOST_VALUES, max(map(len, used.values()), default=0))):
        yield {
            name: values[min(number, len(values) - 1)] if len(values) <= _MOST_VALUES else UNKNOWN
            for name, values in used.items()
        }


def exports(state: ReadingState, request: JobRequest) -> None:
    """Variables that are set by `--export`: those that choose devices count by themselves."""
    for directive in request.find("export"):
        for name, sign, value in (part.partition("=") for part in (directive.value or "").split(",")):
            if sign and name.isidentifier():
                state.variables.setdefault(name, []).append(value)
        setting = SETS_DEVICES.search(directive.value or "")
        if setting is not None:
            state.find("cuda-visible-devices", f"--export sets {setting[1]}", directive.evidence)


def signals(state: ReadingState, request: JobRequest) -> None:
    """Lightning requeues its job by itself when the signal of --signal comes, unless it is told not to."""
    for directive in request.find("signal"):
        if re.search(r"USR1|\b10\b", directive.value or ""):
            what = "with this signal Lightning requeues the job by itself (auto_requeue)"
            state.find("auto-retry", what, directive.evidence)


# --- Which file a command means, and in which language it is written --------------------------------------------------


def interpreter(line: str) -> str:
    """`shell`, `python`, or the name of something that is not read, from the words behind `#!`."""
    words = [name_of(word) for word in line.split()]
    name = next((word for word in words if word != "env" and not word.startswith("-") and "=" not in word), "")
    if name in SHELLS:
        return "shell"
    return "python" if re.fullmatch(r"python[\d.]*", name) else name or "nothing"


def file_kind(file: RunFile, content: str) -> str:
    """`shell`, `python`, `nothing` for what is no text, or the name of another language."""
    if "\0" in content:
        return "nothing"
    if file.how in {"make", "config", "other", "notebook", "settings", "tasks"}:
        return file.how
    if file.how in {"source", "shell"}:
        return "shell"
    if file.how in {"python", "module"} or file.path.endswith(".py"):
        return "python"
    return interpreter(content.split("\n", 1)[0][2:]) if content.startswith("#!") else "shell"


def candidate_paths(file: RunFile, folders: Sequence[str]) -> Iterator[str]:
    """Paths in the project that a file may have, seen from the project's root, the script's folder and each `cd`."""
    path = file.path
    if file.how == "module":
        inner = path.replace(".", "/")
        paths = [f"{inner}.py", f"{inner}/__main__.py"] if re.fullmatch(r"[\w.]+", path) else []
    elif SIGNS.search(path):
        # A computed folder (`$SLURM_SUBMIT_DIR/run.sh`, `$(dirname "$0")/lib.sh`): the rest is looked for.
        behind = SIGNS.split(path)[-1]
        paths = [behind.lstrip("/")] if behind.startswith("/") and len(behind) > 1 else []
    else:
        paths = [path]
    if file.how == "python":  # a folder
        paths += [f"{one.rstrip('/')}/__main__.py" for one in paths if not one.endswith(".py")]
    for one in paths:
        if posixpath.isabs(one):
            yield posixpath.normpath(one)
            continue
        for folder in dict.fromkeys(("", *folders)):
            yield posixpath.normpath(posixpath.join(folder, one))


_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_AS_ASCII = re.compile(r"(?:utf-?8|us-ascii|ascii|latin-?1|iso-?8859-1|l1|cp819)(?:-sig|-unix|-dos|-mac)?")

_OTHERS = re.compile(
    r"iso-?8859-\d+|latin-?\d+|(?:cp|windows-)(?:125\d|437|850|866|932|936|949|950)|koi8-[ru]|mac-?roman"
    r"|gb2312|gbk|gb18030|big5|euc-?(?:jp|kr|cn)|s(?:hift)?-?jis"
)


def python_text(content: str) -> str:
    """A Python text as Python decodes it. Raises ValueError with an encoding that is not read."""
    for line in re.split(r"\r\n?|\n", content[:2000], maxsplit=2)[:2] if "coding" in content[:2000] else ():
        cookie = _COOKIE.match(line)
        name = cookie[1].lower().replace("_", "-") if cookie is not None else ""
        if _OTHERS.fullmatch(name) and not _AS_ASCII.fullmatch(name):
            with suppress(LookupError):
                return as_encoded(content).decode(name, "replace")
        if name and not _AS_ASCII.fullmatch(name):
            raise ValueError(name)
        if name or not re.match(r"[ \t\f]*(?:#|$)", line):
            break
    return content


def modules(name: str, importer: str, folders: Sequence[str], first: Sequence[str] = ()) -> Iterator[list[str]]:
    """For each part of a dotted name the paths that its module may have, seen from the importing file and upwards.

    `first`: where Python looks before its own modules, besides the folder of the program.
    """
    bare = name.lstrip(".")
    here = posixpath.dirname(importer)
    if bare != name:
        for _ in range(len(name) - len(bare) - 1):
            here = posixpath.dirname(here)
        roots = [here]
        yield [posixpath.join(here, "__init__.py")]
    else:
        roots = list(dict.fromkeys((here, "", *folders, posixpath.dirname(here))))
    if bare.partition(".")[0] in sys.stdlib_module_names and bare == name:
        roots = [here, *first]  # a file there stands in the place of Python's own
    parts = [part for part in bare.split(".") if part.isidentifier()]
    for length in range(1, min(len(parts), 6) + 1):
        inner = "/".join(parts[:length])
        yield [
            posixpath.normpath(posixpath.join(root, path))
            for root in roots
            for path in (f"{inner}.py", f"{inner}/__init__.py")
        ]


def files_under(path: str, folders: Sequence[str]) -> bool:
    """Whether a path lies in one of these folders, as far as both are plain."""
    normal = posixpath.normpath(path)
    plain = [posixpath.normpath(folder) for folder in plain_folders(folders)]
    return any(folder != "." and normal.startswith(f"{folder}/") for folder in plain)


def plain_folders(folders: Sequence[str]) -> list[str]:
    """Folders without computed parts."""
    return [folder for folder in folders if folder and UNKNOWN not in folder and not SIGNS.search(folder)]


# --- Texts without a reader here: a look for the words themselves -----------------------------------------------------


_SUBMITS = re.compile(r"(?<![\w.-])(?:sbatch|salloc)(?![\w-])|\bparcluster\(\s*[\"'][^\"']*(?i:slurm)")
_RETRIES = re.compile(r"\bscontrol\s+requeue")
SILENT = ("#", "//", "echo ", "print ")


def scan(text: str, silent: tuple[str, ...] = SILENT) -> Iterator[tuple[str, str, int]]:
    """(rule, what, line) of what the lines name that begin with none of `silent`: comments, printing."""
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        if bare.startswith(silent):
            continue
        if DEVICES.search(bare) and re.search(r"=|setenv|set\s", bare):
            yield "cuda-visible-devices", "it names a variable that chooses devices", number
        if NUMBERED.search(bare) or NUMBERED_CALL.search(bare):
            yield "device-index", "it names a device by its number", number
        if _RETRIES.search(bare):
            yield "auto-retry", "it runs scontrol requeue", number
        elif (found := _SUBMITS.search(bare)) is not None:
            yield "direct-submission", f"it names {found[0]}", number
