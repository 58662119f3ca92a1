"""The files of the project that a job reads, as far as texts name them: for a configuration, and as a manifest.

Found are the files that the script's reading followed, modules that those import, and every word of the script, of its
arguments and of those files that is the name of a file, or a pattern of names. What the job writes is not among them: a
redirection's target, the value of an option for output, what a call of a program saves, and what `#SMOKE writes:`
declares; code and settings are, unless the script itself makes them anew. Of folders only those of settings are walked.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from fnmatch import translate
from functools import partial
from typing import TypeVar

from anyio import lowlevel, to_thread

from slurm_agent_tools.backends import input_words, stages
from slurm_agent_tools.errors import AgentToolsError, StorageError
from slurm_agent_tools.models.request import ScriptReading
from slurm_agent_tools.models.submission_answer import Complaint
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport import process
from slurm_agent_tools.transport.base import Files

WRITES = "what it writes"
"""The part of a configuration that names what its script declares to write."""

TOLD = "what Slurm tells it"
"""The part that names how the job is called and where it waits, for a script that reads that."""

_HASHED = 32 * 2**20
"""Bytes of a file that is told by its contents; a larger one by its size and its time."""

_HASHED_THERE = 2**20

_READ_ALL = 512 * 2**20

_MOST_NAMES, _MOST_NAMES_THERE = 4000, 400

_MOST_TEXTS = 1500

_TELLS = re.compile(r"SLURM_JOB_(NAME|PARTITION|ACCOUNT|QOS|RESERVATION)\b")

_SETTINGS = (".yaml", ".yml", ".toml", ".json", ".ini", ".cfg", ".conf", ".in", ".inp", ".mdp", ".namelist", ".nml")

_OF_PATTERNS = (*(end for end in _SETTINGS if end != ".json"), ".sh", ".r", ".jl", ".csv", ".tsv", ".txt")
"""What a pattern of names is followed for: other files with a part of the name filled in are mostly outputs."""

_PROSE = (".md", ".rst", ".html", ".css", ".lock")

_SETTINGS_FOLDER = re.compile(r"conf|cfg|setting|param|recipe", re.IGNORECASE)

_MATCHES, _MATCHES_THERE, _DEPTH = 200, 40, 3

_MOST_LOOKS, _AT_ONCE = 1_000_000, 100
"""Words times folders that are compared in one search; after how many others get their turn, and names in a thread."""

_LARGE = 2**14
"""Signs of a text that is searched beside the event loop."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that the job reads. `size` in bytes; `identity`: its hash, or its size and time where it is large.

    `named`: it is named by a word only, so that the job may as well write it; `modified`: when it was written last.
    """

    size: int
    identity: str
    named: bool = False
    modified: datetime | None = None


async def read_inputs(
    files: Files, root: str, reading: ScriptReading, args: Sequence[str], *, far: bool
) -> dict[str, InputFile]:
    """What the job reads, by its path in the project `root`. `far`: over a connection, where less is looked at.

    Raises StorageError and ValueError for what cannot be told.
    """
    return await _Search(files, root, reading, args, far=far).all()


_NEEDED = re.compile(
    r"(?<![\w-])--?(?:config|conf|data|dataset|input|train|val|valid|test|weights|resume|params|init)[\w-]*[= \t]+"
    r"[\"']?([\w./@%+-]*\w\.[A-Za-z]\w{0,7})(?![\w.*$/{])|(?<![<\w])<[ \t]*([\w./@%+-]+)(?![\w.*$/{(])"
    r"|(?m:^[ \t]*(?:srun[ \t]+)?(?:python3?|bash|sh|Rscript|julia)[ \t]+([\w./@%+-]+\.[A-Za-z]{1,2})(?![\w.*$/{]))"
)


async def missing_inputs(files: Files, root: str, reading: ScriptReading) -> list[str]:
    """Files that the script gives to a program as its input, and that are in none of the folders where it may run.

    A file that the script itself writes is none of them, and in a script that changes its folder nothing can be told.
    """
    text = "\n".join(line for line in reading.text.split("\n") if not line.lstrip().startswith("#"))
    if re.search(r"(?<![\w-])(?:cd|pushd)[ \t]", text):
        return []
    written = input_words.targets(text)
    needed = {word for match in _NEEDED.finditer(text) for word in match.groups() if word and word[0] != "-"}
    folders = [posixpath.join(root, reading.request.chdir or ""), root]
    gone = []
    for word in sorted(needed - written):
        places = {posixpath.normpath(posixpath.join(folder, word)) for folder in folders}
        if not any([await files.stat(await files.real_path(place)) is not None for place in places]):
            gone.append(word)
    return gone


class _Search:
    """One search through the project where the job runs."""

    def __init__(
        self, files: Files, root: str, reading: ScriptReading, args: Sequence[str], *, far: bool
    ) -> None:  # fmt: skip
        self.files, self.root, self.reading, self.args, self.far = files, root, reading, args, far
        self.lengths: tuple[str, ...] = ()
        self.work = posixpath.normpath(posixpath.join(self.root, reading.request.chdir or ""))
        self.home = posixpath.dirname(posixpath.join(self.root, reading.path))
        self.found: dict[str, InputFile] = {}
        self.asked: set[str] = set()
        self.listed: dict[str, frozenset[str]] = {}
        self.libraries: dict[str, list[str]] = {}
        self.folders: set[str] = set()
        self.told: set[str] = set()
        self.written: set[str] = set()
        self.todo: deque[tuple[str, str]] = deque()  # path in the project, text
        self.bytes = self.looks = self.turn = 0

    async def all(self) -> dict[str, InputFile]:
        """Search until nothing is left."""
        text, request = self.reading.text, self.reading.request
        declared, anew = await computed(stages.declared, text), await computed(self._anew, text)
        self.lengths = declared.lengths
        logs = [path for path in (request.output, request.error) if path]
        self.written = anew | {self._place(w, one) for w in (*declared.writes, *logs) for one in (self.work, self.root)}
        self.asked.add(posixpath.join(self.root, self.reading.path))
        followed = [posixpath.join(self.root, path) for path in (*self.reading.files, *self.reading.settings)]
        for path in followed:
            if path not in anew:
                await self._look(path, named=False)
        self._hear(text)
        said = [part for word in self.args for part in input_words.named(word)]
        words, modules = [*await computed(input_words.all_named, text), *said], input_words.started_modules
        await self._try(words, (self.work, self.root, self.home))
        await self._try(await computed(modules, text), (self.root, posixpath.join(self.root, "src")), named=False)
        while self.todo:
            path, content = self.todo.popleft()
            self._hear(content)
            folder = posixpath.dirname(posixpath.join(self.root, path))
            if path.endswith(".py"):
                await self._python(content, folder)
            else:
                await self._try(await computed(input_words.all_named, content), (self.work, self.root, folder))
            if path.endswith(_SETTINGS):
                await self._settings(path, content, folder)
        if declared.writes:
            self.found[WRITES] = InputFile(0, " ".join(sorted(declared.writes)))
        if self.told:
            self.found[TOLD] = InputFile(0, " ".join(f"{name}={self._said(name)}" for name in sorted(self.told)))
        return self.found

    async def _python(self, content: str, folder: str) -> None:
        """What a program names, where it does not save it, and the modules that it imports."""
        said, folders = await computed(input_words.program, content), (self.work, self.root, folder)
        await self._try([*said.words, *([".env"] if "load_dotenv" in content else [])], folders)
        await self._within(said.words, said.loaded, folders)
        for first, rest in said.joined:
            known = [one for one in folders if first.split("/")[0] in await self._names(one)]
            await self._try([f"{first}/{rest}"], known)
        await self._looks(len(said.paths))
        further = [self._place(word, one) for word in ("src", *said.paths) for one in (self.root, self.work, folder)]
        sources = (folder, self.root, self.work, self.home, *further)
        await self._try(said.classes, (self.root, posixpath.join(self.root, "src")))
        await self._try(said.modules, sources, named=False)
        for one in dict.fromkeys(sources):
            built = await self._built(one)
            imported = {posixpath.splitext(path)[0] for path in said.modules} if built else set()
            await self._try([name for name in built if name.split(".")[0] in imported], (one,), named=False)

    async def _built(self, folder: str) -> list[str]:
        """Modules there that were built of another language."""
        await self._looks(1)
        if folder not in self.libraries:
            self.libraries[folder] = [name for name in await self._names(folder) if name.endswith(".so")]
        return self.libraries[folder]

    async def _settings(self, path: str, content: str, folder: str) -> None:
        """What settings name without its ending, within a folder that they name, or as a class of a program."""
        end, (words, kept, classes) = posixpath.splitext(path)[1], await computed(input_words.settings_words, content)
        await self._try([f"{word}{end}" for word in words if "." not in word], (folder,))
        await self._try(classes, (self.root, posixpath.join(self.root, "src")))
        await self._within(kept, kept, (self.work, self.root, folder))

    async def _within(self, words: Sequence[str], names: Sequence[str], folders: Sequence[str]) -> None:
        """Files of these names in the folders that the words name."""
        if not self.folders:
            return
        known, files = {word.rstrip("/") for word in words if "." not in word}, dict.fromkeys(names)
        await self._looks(len(self.folders))
        for one in sorted(self.folders):
            within = (one[len(place) + 1 :] for place in folders if one.startswith(f"{place}/"))
            if one in known or not known.isdisjoint(within):
                there = await self._names(one)
                fewer, more = (files, there) if len(files) < len(there) else (there, files)
                await self._looks(len(fewer))
                await self._try([name for name in fewer if "." in name and name in more], (one,))

    def _hear(self, content: str) -> None:
        """Note what the job asks of how it is called and where it waits."""
        self.told |= set(_TELLS.findall(content))

    def _said(self, name: str) -> str:
        stated = self.reading.request.find({"NAME": "job-name"}.get(name, name.lower()))
        return stated[-1].value or "" if stated else ""

    def _anew(self, text: str) -> set[str]:
        return {self._place(word, folder) for word in input_words.made_anew(text) for folder in (self.work, self.root)}

    def _place(self, word: str, folder: str) -> str:
        return posixpath.normpath(posixpath.join(folder, word))

    async def _names(self, folder: str) -> frozenset[str]:
        """What is in a folder of the project; nothing in one that is not there."""
        root = self.root.rstrip("/")
        if folder not in self.listed:
            above, name = posixpath.split(folder)
            there = folder == root or (folder.startswith(f"{root}/") and name in await self._names(above))
            names = await self.files.list(await self.files.real_path(folder)) if there else None
            self.listed[folder] = frozenset(names or ())
        return self.listed[folder]

    async def _try(self, words: Iterable[str], folders: Sequence[str], *, named: bool = True) -> None:
        """Look for files of these names, in each of these folders; a word without a sign of a file is one if it is."""
        places = list(dict.fromkeys(folders))
        for word in dict.fromkeys(words):
            await self._looks(len(places))
            first, pattern = word.partition("/")[0], input_words.is_pattern(word)
            for folder in places:
                if first not in await self._names(folder) and first not in {"", ".", "..", word if pattern else "."}:
                    continue
                place = self._place(word, folder)
                if pattern:
                    await self._match(posixpath.dirname(place), input_words.filled(posixpath.basename(word)))
                elif posixpath.basename(place) in await self._names(posixpath.dirname(place)):
                    await self._look(place, named=named, needed=False)

    async def _looks(self, many: int) -> None:
        """Count what is compared, and let others go on meanwhile. Raises ValueError for more than any project has."""
        self.looks, self.turn = self.looks + many, self.turn + many
        if self.looks > _MOST_LOOKS:
            raise ValueError(f"its words and folders are more than {_MOST_LOOKS} places to look at")
        if self.turn >= _AT_ONCE:
            self.turn = 0
            await lowlevel.checkpoint()

    async def _match(self, folder: str, pattern: str) -> None:
        """The files of a pattern, where they are settings, code or tables."""
        if pattern.lower().endswith(_OF_PATTERNS) and not input_words.is_filled_in(folder.removeprefix(self.root)):
            names = await self._names(folder)
            await self._looks(1 + len(pattern) * (len(names) + 100) // 100)
            found = await computed(partial(_fitting, pattern), names)
            for name in found[: _MATCHES_THERE if self.far else _MATCHES]:
                await self._look(posixpath.join(folder, name), named=True, needed=False)

    async def _walk(self, folder: str, depth: int = 0) -> None:
        """All settings in a folder that is named like one of settings."""
        for name in sorted(await self._names(folder)):
            if len(self.found) < (_MATCHES_THERE if self.far else _MATCHES) and name.endswith(_SETTINGS):
                await self._look(posixpath.join(folder, name), named=True, needed=False)
            elif "." not in name and depth < _DEPTH:
                await self._walk(posixpath.join(folder, name), depth + 1)

    async def _look(self, path: str, *, named: bool, needed: bool = True) -> None:
        """Take the file in, where there is one; where it was followed before, it has to be there."""
        if path in self.asked or not path.startswith(self.root.rstrip("/") + "/") or (named and path in self.written):
            return
        self.asked.add(path)
        most = _MOST_NAMES_THERE if self.far else _MOST_NAMES
        if len(self.asked) > most or len(self.found) > _MOST_TEXTS:
            raise ValueError(f"it names more than {most} files")
        real = await self.files.real_path(path)
        stat = await self.files.stat(real)
        if stat is None or stat.kind != "file":
            if needed:
                raise StorageError(f"{path} cannot be read", hint="Call again.")
            if stat is not None and stat.kind == "dir":
                self.folders.add(path)
                if named and _SETTINGS_FOLDER.search(posixpath.basename(path)):
                    await self._walk(path)
            return
        name = posixpath.relpath(path, self.root)
        most_bytes = _HASHED_THERE if self.far else _HASHED
        self.bytes += min(stat.size, most_bytes)
        moved = "" if real == path else f" {real}"
        if stat.size > most_bytes or self.bytes > _READ_ALL:
            identity = f"{stat.size} bytes of {stat.modified.isoformat()}{moved}"
            self.found[name] = InputFile(stat.size, identity, named, stat.modified)
            return
        data = await self.files.read(real, size=most_bytes + 1)
        if data is None or len(data) != stat.size:
            raise StorageError(f"{name} changed, or went away, while it was read", hint="Call again.")
        self.found[name] = InputFile(stat.size, f"{await self._hash(name, data)}{moved}", named, stat.modified)
        if b"\0" not in data and len(data) <= 2**20 and not name.endswith(_PROSE):
            self.todo.append((name, data.decode("utf-8", "surrogateescape")))

    async def _hash(self, name: str, data: bytes) -> str:
        """Of settings and input without the numbers that are declared as its length."""
        if self.lengths and name.endswith(_SETTINGS):
            text = data.decode("utf-8", "surrogateescape")
            without = partial(stages.without_lengths, lengths=self.lengths, apart=True)
            data = (await computed(without, text)).encode("utf-8", "surrogateescape")
        return hashlib.sha256(data).hexdigest()


_Found = TypeVar("_Found")

_Text = TypeVar("_Text", str, frozenset[str])


async def computed(find: Callable[[_Text], _Found], text: _Text) -> _Found:
    """What is found in a text or in names, beside the event loop where they are long."""
    large = len(text) > (_LARGE if isinstance(text, str) else _AT_ONCE)
    return await to_thread.run_sync(find, text) if large else find(text)


def _fitting(pattern: str, names: frozenset[str]) -> list[str]:
    return sorted(filter(re.compile(translate(pattern)).match, names))


# --- Stage 0: the manifest of a script, and the project's own check ---------------------------------------------------

_LISTED = 20

_SECONDS = 120.0

_OUTPUT = 2**16

_LINES = 5


async def manifest(
    files: Files, root: str, reading: ScriptReading, *, far: bool, brief: bool
) -> tuple[list[Complaint], dict[str, object]]:
    """What is missing, and every file of the project that the script reads, where the job will run.

    `brief`: the first files alone, each with the beginning of its hash.
    """
    said = stages.declared(reading.text).problem
    warnings = (
        [] if said is None else [Complaint(path="#SMOKE", message=said, remedy=f"Write it like `{stages.FORM}`.")]
    )
    try:
        found = await read_inputs(files, root, reading, (), far=far)
        gone = await missing_inputs(files, root, reading)
    except (AgentToolsError, ValueError) as error:
        told = error.message if isinstance(error, AgentToolsError) else str(error)
        message = f"the files that the script reads could not be listed: {told}"
        return [*warnings, Complaint(path="files", message=message, remedy="Call again.")], {}
    warnings += [
        Complaint(
            path=path, message="is not there where the job will run", remedy="Correct the path, or bring it there."
        )
        for path in gone
    ]
    found = {name: one for name, one in found.items() if name not in {WRITES, TOLD}}
    names = sorted(found)
    shown = names[:_LISTED] if brief else names
    listed = {
        name: {"size": found[name].size, "sha256": found[name].identity[: 12 if brief else None]} for name in shown
    }
    rest = {"files_not_shown": len(names) - len(shown)} if len(shown) < len(names) else {}
    return warnings, {"files": listed, **rest}


async def dry_run(
    argv: Sequence[str], env: Mapping[str, str], folder: str
) -> tuple[list[Complaint], dict[str, object]]:
    """What the project's own check says, run in `folder`: an error unless it ends with exit code 0."""
    what, remedy = f"the project's own check `{argv[0]}`", "Mend what it says, then call validate_config again."
    try:
        done = await process.run(argv, env=env, cwd=folder, timeout=_SECONDS, max_output=_OUTPUT)
    except OSError as error:
        message, remedy = f"{what} cannot be run: {error.strerror}", "Correct the setting dry_run."
        return [Complaint(path="dry_run", message=message, remedy=remedy)], {"dry_run": "failed"}
    if done.exit_code == 0:
        return [], {"dry_run": f"passed in {done.seconds:.1f} s"}
    text = (done.stdout + done.stderr).decode("utf-8", "replace").strip().splitlines()
    told = sanitize.shown("; ".join(text[-_LINES:]))
    how = f"takes longer than {_SECONDS:.0f} s" if done.exit_code is None else f"ended with exit code {done.exit_code}"
    return [Complaint(path="dry_run", message=f"{what} {how}: {told}", remedy=remedy)], {"dry_run": "failed"}
