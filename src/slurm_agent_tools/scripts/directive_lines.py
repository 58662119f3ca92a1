"""The directives of a batch script, as sbatch reads them: which lines count, their words, and one option list of all.

Rules of sbatch(1) as observed: a line counts when it begins with `#SBATCH` in column 0, until the first line that is
neither blank nor a comment; all lines of a component make one argument vector.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from slurm_agent_tools.models import sbatch_options
from slurm_agent_tools.models.request import Directive, Evidence, Pin, Source
from slurm_agent_tools.models.sbatch_options import MOST_OPTIONS, OptionWord

MAX_BYTES = 4 * 2**20
MAX_LINE = 64 * 2**10
MAX_SHOWN = 300
"""Letters of a line that prove an option: more are not kept, since one line may hold many of them."""
MAX_PROBLEMS = 100
_SPACE = " \t\v\f\r"
_PREFIXES = ("#SBATCH", "#SLURM")
_OTHERS = ("#PBS", "#BSUB")
_OTHERS_REACH = 100  # sbatch looks for them until so many lines that are no comments
_COMPONENT = frozenset({"hetjob", "packjob"})
_RESOURCE_WORDS = """
mem mem-per-cpu mem-per-gpu gpus gpus-per-node gpus-per-task gpus-per-socket gres time nodes ntasks ntasks-per-node
ntasks-per-gpu array cpus-per-task cpus-per-gpu tres-per-task
"""

AMOUNTS = frozenset(_RESOURCE_WORDS.split())
"""Options that say how much a job gets."""

# What is wrong with a file as a whole, where it can be mended.
EMPTY = "the script is empty"
BYTE_ORDER_MARK = "a byte order mark stands before the #!"
NO_INTERPRETER = "the script does not start with #! and the path of an interpreter"
NUL_BYTE = "the script holds a NUL byte"
LARGE = f"the script is larger than {MAX_BYTES // 2**20} MB"
LONG_LINE = f"a line is longer than {MAX_LINE // 2**10} KB"
DOS_ENDS = "the script has DOS line ends (CR LF), which sbatch refuses"

_JUSTIFIED = re.compile(r"\bJUSTIFIED:\s*(\S.*)", re.IGNORECASE)


@dataclass(slots=True)
class Header:
    """What the directives of one script say. `problems` hold the reason and the line."""

    directives: list[Directive] = field(default_factory=list)
    problems: list[Evidence] = field(default_factory=list)
    components: int = 1
    interpreter: str | None = None
    justification: str | None = None


def read_directives(data: bytes, file: str) -> Header:
    """Everything that sbatch takes from a script before it runs. Never raises: what cannot be read is a problem."""
    header = Header()
    whole = unreadable(data)
    if whole is not None:
        header.problems.append(Evidence(file, 1, whole))
        return header
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    header.interpreter = lines[0][2:].strip()
    _read_component_lines(header, lines, file)
    header.problems += [
        Evidence(file, number, f"sbatch may also obey this line of another scheduler; delete it: {_shown(line)}")
        for number, line in _other_schedulers(lines)
    ]
    if rest := header.problems[MAX_PROBLEMS:]:
        more = Evidence(file, rest[0].line, f"{len(rest)} more lines cannot be read; correct those above first")
        header.problems[MAX_PROBLEMS:] = [more]
    return header


def unreadable(data: bytes) -> str | None:  # noqa: PLR0911 - one reason after the other
    """Why sbatch, or we, refuse the script as a whole; None when it can be read."""
    if len(data) > MAX_BYTES:
        return LARGE
    if not data.strip():
        return EMPTY
    if not data.startswith(b"#!"):
        return BYTE_ORDER_MARK if data.startswith(b"\xef\xbb\xbf") else NO_INTERPRETER
    if b"\0" in data:
        return NUL_BYTE
    if b"\r\n" in data:
        return DOS_ENDS
    if len(max(data.split(b"\n"), key=len)) > MAX_LINE:
        return LONG_LINE
    return None


def _shown(line: str) -> str:
    return line if len(line) <= 200 else f"{line[:197]}..."


def _reached(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Directive lines up to the first line that is neither blank nor a comment."""
    for number, line in enumerate(lines, start=1):
        bare = line.lstrip(_SPACE)
        if bare and not bare.startswith("#"):
            return
        if line.startswith(_PREFIXES):
            yield number, line


def _other_schedulers(lines: list[str]) -> Iterator[tuple[int, str]]:
    code = 0
    for number, line in enumerate(lines, start=1):
        bare = line.lstrip(_SPACE)
        code += bool(bare) and not bare.startswith("#")
        if code > _OTHERS_REACH:
            return
        if line.startswith(_OTHERS):
            yield number, line


def _read_component_lines(header: Header, lines: list[str], file: str) -> None:
    """Collect the words of each component, which begins at a line whose first word is `hetjob`."""
    words: list[OptionWord] = []
    reasons: dict[int, str] = {}
    for number, line in _reached(lines):
        if len(header.directives) > MOST_OPTIONS:  # of other components
            header.problems.append(Evidence(file, number, f"more than {MOST_OPTIONS} options are given"))
            break
        if len(words) > 2 * MOST_OPTIONS:  # which is told when they are read: an option takes two at most
            break
        try:
            line_words, comment = split(line[len("#SBATCH") :] if line.startswith("#SBATCH") else line[len("#SLURM") :])
        except ValueError as error:
            header.problems.append(Evidence(file, number, f"{error}: {_shown(line)}"))
            continue
        if any(word.lower() in _COMPONENT for word in line_words):
            _read_options(header, words, lines, file)
            words = []
            header.components += 1
            header.directives.append(Directive("hetjob", None, "script", Evidence(file, number, line[:MAX_SHOWN])))
            continue
        words += [OptionWord(word, number) for word in line_words]
        reason = _JUSTIFIED.search(comment)
        if reason is not None:
            reasons[number] = reason[1].strip()
    _read_options(header, words, lines, file)
    stated = {directive.evidence.line for directive in header.directives if directive.option in AMOUNTS}
    justifications = dict.fromkeys(reason for number, reason in reasons.items() if number in stated)
    header.justification = "; ".join(justifications) or None


def _read_options(header: Header, words: list[OptionWord], lines: list[str], file: str) -> None:
    options, failure = sbatch_options.read_words(words)
    for given in options:
        if given.option.name in sbatch_options.EARLY:
            continue
        evidence = Evidence(file, given.line, lines[given.line - 1][:MAX_SHOWN])
        header.directives.append(Directive(given.option.name, given.value, "script", evidence))
        if given.value_line != given.line:
            taken = f"so sbatch takes {given.value!r} from line {given.value_line}"
            what = f"--{given.option.name} has no value on its line, {taken}"
            header.problems.append(Evidence(file, given.line, f"{what}: {_shown(evidence.text)}"))
    if failure is not None:
        header.problems.append(Evidence(file, failure.line, f"{failure}: {_shown(lines[failure.line - 1])}"))


def split(text: str) -> tuple[list[str], str]:
    """Words of a directive line and the comment behind them: quotes group, a backslash takes the next sign as it is.

    ValueError for what sbatch refuses, silently drops, or reads differently in different versions.
    """
    words: list[str] = []
    position = 0
    while True:
        while position < len(text) and text[position] in _SPACE:
            position += 1
        if position >= len(text):
            return words, ""
        if text[position] == "#":
            return words, text[position + 1 :]
        if text[position] == ":":
            raise ValueError("a word begins with `:`")
        word, position = _word(text, position)
        if not word and position >= len(text):  # a lone backslash at the end of the line
            return words, ""
        if not word:
            raise ValueError("an empty word makes sbatch drop the rest of the line")
        words.append(word)


def _word(text: str, position: int) -> tuple[str, int]:
    """The word that begins here, and the position behind it."""
    word: list[str] = []
    quote = ""
    while position < len(text):
        sign = text[position]
        if sign == "\\":
            word.append(_escaped(text, position))
            position += 2
            continue
        if quote:
            if sign == quote:
                quote = ""
            else:
                word.append(sign)
        elif sign in "'\"":
            quote = sign
        elif sign in _SPACE or sign == "#":
            break
        else:
            word.append(sign)
        position += 1
    if quote:
        raise ValueError("a quote is not closed")
    return "".join(word), position


def _escaped(text: str, position: int) -> str:
    sign = text[position + 1 : position + 2]
    if sign and sign in _SPACE:
        raise ValueError("a blank behind a backslash reads differently in different versions of Slurm; use quotes")
    return sign


# --- #SBATCH lines from values: quoted so that every Slurm version reads back what was meant --------------------------


_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./\[\]-]+")


def directive_line(option: str, value: str | None = None) -> str:
    """One line. sbatch groups by double quotes and takes a backslash's next character as it is.

    Raises ValueError for a value that one line cannot hold.
    """
    if value is None:
        return f"#SBATCH --{option}"
    if not value or any(not sign.isprintable() for sign in value):
        raise ValueError(f"not a value for one line: {value!r}")
    if _PLAIN.fullmatch(value):
        return f"#SBATCH --{option}={value}"
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'#SBATCH --{option}="{quoted}"'


# --- Directives from the command line: what the caller and the guard put there ----------------------------------------


def arguments_to_directives(arguments: Mapping[str, str]) -> tuple[Directive, ...]:
    """Options that the caller puts on the command line, by their long names. ValueError for an unknown name."""
    return tuple(
        Directive(
            sbatch_options.find_long(name).name, value, "argument", Evidence("command line", 0, f"--{name}={value}")
        )
        for name, value in arguments.items()
    )


def pins_to_directives(pins: Sequence[Pin]) -> tuple[Directive, ...]:
    """Options that the guard puts on the command line. ValueError for one that sbatch would not take."""
    return words_to_directives([pin.option for pin in pins], "pinned")


def words_to_directives(words: Sequence[str], source: Source) -> tuple[Directive, ...]:
    """Options of sbatch's command line, word by word. ValueError for one that sbatch would not take."""
    if ":" in words:  # wherever it stands, also as a value
        raise ValueError("a lone `:` begins another component")
    return tuple(
        Directive(option.name, value, source, Evidence("command line", 0, f"--{option.name}={value}"))
        for option, value in sbatch_options.read(words)
    )


def spelled(name: str, value: str | None) -> str:
    """One option as it stands on a line."""
    if value is None:
        return f"--{name}"
    plain = re.fullmatch(r"[\w@%+=:,./\[\]-]+", value) is not None
    return f"--{name}={value}" if plain else f"--{name}={json.dumps(value, ensure_ascii=False)}"
