"""What commands do to files and folders, for the case that one of them is run later."""

from __future__ import annotations

import posixpath
import re

from slurm_agent_tools.jobscript.call import Call
from slurm_agent_tools.jobscript.program import Text
from slurm_agent_tools.jobscript.words import unreadable
from slurm_agent_tools.jobscript.wrappers import name_of


def changes(call: Call) -> None:
    """cd."""
    folders = [word for word in call.rest if not word.startswith("-")]
    if folders and not unreadable(folders[0]):
        before = call.program.folders[-1:]
        call.program.folders.append(folders[0])
        if before and not posixpath.isabs(folders[0]) and ".." not in folders[0]:
            call.program.folders.append(posixpath.join(before[0], folders[0]))


def copies(call: Call) -> None:
    """cp, mv, ln, install: the same text under another name."""
    files = [word for word in call.rest if not word.startswith("-")]
    if len(files) == 2:
        call.program.copied[name_of(files[1])] = files[0]


def hashes(call: Call) -> None:
    """`hash -p FILE NAME`: a command under another name."""
    if call.rest[:1] == ["-p"] and len(call.rest) == 3:
        call.program.copied[call.rest[2]] = call.rest[1]


def unpacks(call: Call) -> None:
    """git clone, unzip and tar bring folders whose programs cannot be seen now."""
    rest = call.rest
    if call.name == "git":
        words = [word for word in rest if not word.startswith("-")]
        if words[:1] == ["clone"] and len(words) > 1:
            call.program.fetched.append(words[2] if len(words) > 2 else name_of(words[1]).removesuffix(".git"))
        return
    for index, word in enumerate(rest[:-1]):
        if word in {"-d", "-C", "--directory"}:
            call.program.fetched.append(rest[index + 1])


def edits(call: Call) -> None:
    """sed -i and patch change files in a way that is not followed."""
    files = [word for word in call.rest if not word.startswith("-")]
    for word in call.rest if call.name == "sed" else ():
        started = re.match(r"[\d,/$]*e\s+(.+)", word)
        if started is not None:
            call.program.texts.append(Text("shell", started[1], call.line))
    if call.name == "patch" or any(re.match(r"-\w*i|--in-place", word) for word in call.rest):
        for name in files[-2:]:
            call.program.written[name_of(name)] = None


def fetches(call: Call) -> None:
    """curl and wget write files that cannot be seen now."""
    for index, word in enumerate(call.rest[:-1]):
        if re.fullmatch(r"-[a-zA-Z]*[oO]|--output(?:-document)?", word):
            call.program.written[name_of(call.rest[index + 1])] = None
    if "-O" in call.rest or call.name == "wget":
        for word in call.rest:
            if "://" in word:
                call.program.written.setdefault(name_of(word), None)
