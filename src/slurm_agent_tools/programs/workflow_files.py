"""Work that is started by a plan: makefiles, the settings of workflow managers, and the programs that follow them."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import dropwhile, pairwise
from typing import TypeVar

from slurm_agent_tools.programs.job_work import is_work
from slurm_agent_tools.programs.program import NUMBERED, SETS_DEVICES, InnerText, Program, RunFile
from slurm_agent_tools.programs.wrapped_command import Command, options
from slurm_agent_tools.text import bounded_documents

_RULE = re.compile(r"([^\s:=#][^:=#]*+)::?(?!=)\s*+([^=;]*+)(?:;(.*))?$")
_VARIABLE = re.compile(r"(?:export\s+)?([\w.-]+)\s*(?:[:?+]?=)\s*(.*)$")
_STARTED = re.compile(r"\$[({]shell\s++((?>(?:[^(){}]|\([^()]*+\)|\{[^{}]*+\})*))[)}]")
_USE = re.compile(r"\$[({](\w+)[)}]")

_CHOSEN = r"\b(?:executor|cluster|batch[-_]?system|scheduler|submit|backend\.default)\b\W"
_GIVEN = re.compile(_CHOSEN, re.IGNORECASE)
_SUBMITS = re.compile(rf"{_CHOSEN}{{1,4}}slurm\b|hydra[/.]launcher\W{{1,4}}submitit_slurm", re.IGNORECASE)
_SBATCH = re.compile(r"\bsbatch\b", re.IGNORECASE)

_FLAG = re.compile(r"(?:slurm|drmaa)\s*:\s*true\b", re.IGNORECASE)

_RETRIES = re.compile(
    r"(?:retries|restart[-_]times|maxRetries)\W{1,3}([1-9]\d*)|errorStrategy\W{1,6}retry", re.IGNORECASE
)

_MAX_GOALS = 200
_SUFFIXES = re.compile(r"\.DEFAULT|(?:\.[a-z]\w*){2}")  # of old rules: for what has no other one
_TRYING_AGAIN = "--retries --restart-times -T --errorStrategy -process.errorStrategy"


_T = TypeVar("_T")
_Recipe = list[tuple[int, str]]
_LONGEST = 10_000  # characters of a line


@dataclass(slots=True)
class _Make:
    """A makefile: for each target what it needs and its lines of shell, and the variables."""

    needs: dict[str, list[list[str]]] = field(default_factory=dict)  # targets of one rule share what it holds
    lines: dict[str, list[_Recipe]] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    first: str | None = None


def read_makefile(text: str, goals: Sequence[str]) -> Program:
    """The recipes that `make GOALS` runs, as shell. Patterns and computed targets count as wanted."""
    program, made = Program(), _Make()
    recipe: _Recipe = []
    for number, line in _joined(text):
        if not line:  # nothing ends with it
            continue
        if len(line) > _LONGEST:
            program.opaque(f"a line of this makefile has more than {_LONGEST:,} characters", number)
            continue
        setting = SETS_DEVICES.search(_plainly(line)) if "=" in line and not line.startswith("\t") else None
        if setting is not None:
            program.find("cuda-visible-devices", f"it sets {setting[1]}", number)
        if not line.startswith("\t"):
            _at_once(program, made, number, line, goals)
        recipe = _line(made, recipe, number, line)
    settings = dict(word.split("=", 1) for word in goals if "=" in word)
    made.variables |= settings
    recipes: dict[int, str] = {}
    wanted = _wanted(made, [word for word in goals if "=" not in word and not word.startswith("-")])
    for found in _each_once(block for target in wanted for block in made.lines.get(target, ())):
        recipes |= {number: _recipe(made, line) for number, line in found}
    if recipes:  # one text, each line where it stands in the file
        whole = "\n".join(recipes.get(number, "") for number in range(1, max(recipes) + 1))
        program.texts.append(InnerText("shell", whole, 1))
    return program


def _at_once(program: Program, made: _Make, number: int, line: str, goals: Sequence[str]) -> None:
    """What make reads and runs before any recipe: included makefiles, `$(shell ...)` and `NAME != command`."""
    included = re.match(r"-?s?include\s+([^#]*)", _used(made, line))
    program.files += [RunFile("make", path, number, tuple(goals)) for path in (included[1].split() if included else ())]
    started = [*_STARTED.findall(line), *re.findall(r"^[\w.-]+\s*!=\s*(.*)", line)]
    program.texts += [InnerText("shell", _recipe(made, text), number) for text in started]


def _plainly(line: str) -> str:
    """`NAME := value` as the shell writes it. Each run of signs is looked at once."""
    return re.sub(r"(?<!\s)\s++=", "=", re.sub(r"(?<![:?+])[:?+]++=", "=", line))


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """Lines with those that a backslash continues; the number is that of the first one."""
    start, parts = 1, list[str]()
    for number, line in enumerate(text.split("\n"), start=1):
        start = start if parts else number
        if line.endswith("\\"):
            parts.append(line[:-1] + " ")
            continue
        yield start, "".join(parts) + line
        parts = []


def _line(made: _Make, recipe: _Recipe, number: int, line: str) -> _Recipe:
    """The recipe that the next line may belong to."""
    if line.startswith("\t"):
        recipe.append((number, line.strip()))
        return recipe
    if not line.strip() or line.lstrip().startswith("#"):
        return recipe
    variable = _VARIABLE.match(line)
    if variable is not None:
        made.variables[variable[1]] = variable[2].strip()
        return recipe
    rule = _RULE.match(_used(made, line))
    if rule is None:
        return recipe
    targets, needs = rule[1].split(), rule[2].split()
    recipe = [(number, rule[3].strip())] if rule[3] else []
    for target in targets:
        made.needs.setdefault(target, []).append(needs)
        made.lines.setdefault(target, []).append(recipe)
    if made.first is None and not targets[0].startswith("."):
        made.first = targets[0]
    return recipe


def _used(made: _Make, line: str) -> str:
    """The line with its variables put in, three deep."""
    for _ in range(3):
        line = _USE.sub(lambda found: made.variables.get(found[1], f"${{{found[1]}}}")[:1000], line)[:_LONGEST]
    return line


def _recipe(made: _Make, line: str) -> str:
    """A line of shell. `$@` and the functions of make become something that is only known at run time."""
    text = _used(made, line.lstrip("@-+ \t")).replace("$(shell ", "$(").replace("${MAKE}", "make")
    text = re.sub(r"\$[@<^?*%+|]|\$[({][@<^?*%+|][DF][)}]", "${_}", text.replace("$$", "\0"))
    for _ in range(4):
        text = re.sub(r"\$[({](?:[a-z]+ )[^(){}]*[)}]", "${_}", text)
    return text.replace("\0", "$")


def _each_once(blocks: Iterable[list[_T]], seen: set[int] | None = None) -> Iterator[list[_T]]:
    """The blocks without those that are in `seen` already; many targets may share one that is long."""
    seen = set() if seen is None else seen
    for block in blocks:
        if id(block) not in seen:
            seen.add(id(block))
            yield block


def _wanted(made: _Make, goals: Sequence[str]) -> list[str]:
    known = [*made.needs]
    first = made.variables.get(".DEFAULT_GOAL", made.first)
    rest = list(goals) or ([first] if first is not None else [])
    rest += [target for target in known if "%" in target or "$" in target or _SUFFIXES.fullmatch(target)]
    found: dict[str, None] = {}
    seen: set[int] = set()
    while rest and len(found) < _MAX_GOALS:
        target = rest.pop()
        if target not in found:
            found[target] = None
            rest += (name for needs in _each_once(made.needs.get(target, ()), seen) for name in needs)
    return [target for target in known if target in found]


def read_notebook(text: str) -> Program:
    """The code cells of a Jupyter notebook, as Python, and their lines with `!` as shell."""
    program = Program()
    try:
        cells = bounded_documents.json_value(text).get("cells", [])
    except (ValueError, RecursionError, AttributeError):
        program.opaque("this notebook cannot be read", 1)
        return program
    shell: list[str] = []
    python: list[str] = []
    for cell in cells if isinstance(cells, list) else []:
        source = cell.get("source", "") if isinstance(cell, dict) and cell.get("cell_type") == "code" else ""
        lines = ("".join(map(str, source)) if isinstance(source, list) else str(source)).split("\n")
        if lines[0].startswith("%%"):
            shell += lines[1:] if re.match(r"%%(?:bash|sh|script)", lines[0]) else []
            continue
        shell += [found[1] for line in lines if (found := re.match(r"\s*+(?:[\w, ]*+=\s*+)?!(.*)", line)) is not None]
        python += [re.sub(r"^(\s*+)(?:[\w, ]*+=\s*+)?[!%?].*", r"\1pass", line) for line in lines]
    program.texts += [InnerText("shell", "\n".join(shell), 1)] if shell else []
    program.texts += [InnerText("python", "\n".join(python), 1)] if python else []
    return program


def _submits(line: str) -> bool:
    """Whether it names Slurm as what runs the work, or sbatch anywhere behind the first setting of that."""
    given = _GIVEN.search(line)
    return (given is not None and _SBATCH.search(line, given.end()) is not None) or _SUBMITS.search(line) is not None


def read_config(text: str, chosen: Sequence[str] = ()) -> Program:
    """Settings of snakemake or Nextflow that submit jobs or try again; of profiles those that are chosen are."""
    program, depth, profiles, within = Program(), 0, -1, ""
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip()
        if re.match(r"profiles\s*\{", bare) and profiles < 0:
            profiles = depth
        if profiles >= 0 and depth == profiles + 1 and (named := re.match(r"[\"']?([\w-]+)[\"']?\s*\{", bare)):
            within = named[1]
        depth += bare.count("{") - bare.count("}")
        inside = profiles >= 0 and within not in chosen
        if profiles >= 0 and depth <= profiles:
            profiles = -1
        if inside or bare.startswith(("#", "//")):
            continue
        if included := re.match(r"includeConfig\s*+\(?\s*[\"']([^\"'$]+)", bare):
            program.files.append(RunFile("config", included[1], number, tuple(chosen)))
        if _submits(bare) or _FLAG.match(bare):
            program.find("direct-submission", "this setting submits jobs", number)
        if _RETRIES.search(bare):
            program.find("auto-retry", "this setting starts failed work again", number)
    return program


_VISIBLE = re.compile(r"((?:CUDA|NVIDIA|HIP|ROCR)_VISIBLE_DEVICES)[\"']?\s*[:=]\s*[\"']?[\w-]")
_KEY = r"[\"']?\b(?:\w+[._])?(?:gpu_ids?|device_ids?|gpu_list|gpus|devices)[\"']?\s*[:=]"

_NUMBERS = re.compile(
    rf"{_KEY}\s*(?:\[\s*[\"']?\d|[\"']?\d+\s*,)|\bgpu_ids?[\"']?\s*[:=]\s*[\"']?\d|\bdevice[\"']?\s*:\s*[1-9]\d*\s*,?$"
)

_OPEN_LIST = re.compile(rf"(?:-\s+)?{_KEY}\s*\[?")
_ITEM = re.compile(r"(?:-\s*)?[\"']?\d+[\"']?\s*[,\]]*")


def read_settings(text: str) -> Program:
    """YAML or JSON that a program is given: devices by their number, and variables that choose them."""
    program, listing = Program(), False
    for number, line in enumerate(text.split("\n"), start=1):
        bare = re.sub(r"(?:^|\s)(?:#|//).*", "", line[:10_000]).strip()
        setting = _VISIBLE.search(bare)
        if setting is not None:
            program.find("cuda-visible-devices", f"its settings give {setting[1]} a value", number)
        if NUMBERED.search(bare) or _NUMBERS.search(bare) or (listing and _ITEM.fullmatch(bare)):
            program.find("device-index", f"its settings name a device by its number: {bare[:80]}", number)
            listing = False
        elif bare:
            listing = _OPEN_LIST.fullmatch(bare) is not None
    return program


def read(kind: str, text: str, goals: Sequence[str]) -> Program:
    """A text of the kind `make`, `config`, `settings` or `notebook`; `goals`: what is asked of a makefile."""
    if kind in {"make", "config"}:
        return read_makefile(text, goals) if kind == "make" else read_config(text, goals)
    return read_settings(text) if kind == "settings" else read_notebook(text)


# --- Programs that start other work by a plan of their own: workflow managers, make, systemd --------------------------


def workflows(call: Command) -> None:
    """Workflow managers that submit jobs, and wrappers that try again."""
    if call.name in {"autorestart", "supervisord", "forever"} or (call.name == "retry" and is_work(_retried(call))):
        call.program.find("auto-retry", "it runs a command again when it fails", call.line)
    if call.name == "cylc" and call.rest[:1] in (["play"], ["vip"], ["run"], ["restart"]):
        call.program.find("direct-submission", "it plays a workflow of Cylc, which submits its jobs", call.line)
    if call.name == "hq" and ("alloc", "add") in pairwise(word for word in call.rest if not word.startswith("-")):
        call.program.find("direct-submission", "it runs hq alloc add, which submits jobs", call.line)
    _settings(call)
    for word, value in options(call.rest):
        if word in _TRYING_AGAIN.split() and value not in {"0", "terminate"}:
            call.program.find("auto-retry", f"{call.name} {word} starts failed work again", call.line)
        slurm = word in {"--slurm", "--cluster", "--cluster-generic-submit-cmd", "--cluster-sync", "--drmaa"}
        if slurm or (word.strip("-") in {"profile", "executor", "e", "process.executor"} and "slurm" in value.lower()):
            call.program.find("direct-submission", f"{call.name} {word} submits jobs by itself", call.line)


REMOTE = re.compile(r"[a-z][a-z+]*://|git@|git\+")
_REPOSITORY = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)?")

_OF_NEXTFLOW = re.compile(
    r"-(?:profile|r|revision|w|work-dir|c|C|config|params-file|log|hub|user|name|entry|main-script)"
)


def _pipeline(call: Command) -> None:
    """`nextflow run PIPELINE`: a file, a folder, or the name of a repository that Nextflow fetches."""
    rest = iter(call.rest)
    plain = [word for word in rest if not _skipped(word, rest)]
    if plain[:1] != ["run"]:
        plain = ["run", *(word for word in plain[:1] if word.endswith(".nf"))]
    for path in plain[1:2]:
        file = path if path.endswith(".nf") else posixpath.join(path, "main.nf")
        away = REMOTE.match(path) or (file != path and _REPOSITORY.fullmatch(path))
        what = f"it runs the pipeline {path}, which comes from elsewhere while the job runs" if away else ""
        call.program.files.append(RunFile("tasks", file, call.line, ("nextflow",), what))


def _skipped(word: str, rest: Iterator[str]) -> bool:
    """Whether a word is an option; the value of one goes with it."""
    if _OF_NEXTFLOW.fullmatch(word):
        next(rest, "")
    return word.startswith("-")


def _retried(call: Command) -> list[str]:
    """The command behind `retry -t 3` or `retry 3`."""
    return list(dropwhile(re.compile(r"-\S*|\d+[smh]?").fullmatch, call.rest))


_PROFILE = ("config.yaml", "config.v8+.yaml")  # the second goes before the first from version 8 on


def _settings(call: Command) -> None:
    """Files with a workflow manager's settings."""
    if call.name == "nextflow":
        chosen = tuple(name for word, value in options(call.rest) if word == "-profile" for name in value.split(","))
        call.program.files.append(RunFile("config", "nextflow.config", call.line, chosen))
        _pipeline(call)
    elif call.name == "snakemake" and "--workflow-profile" not in {word for word, _ in options(call.rest)}:
        places = (f"{folder}profiles/default/{name}" for folder in ("", "workflow/") for name in _PROFILE)
        call.program.files += [RunFile("config", place, call.line) for place in places]
    for word, value in options(call.rest):
        if word in {"-c", "-C", "-config"} and call.name == "nextflow":
            call.program.files.append(RunFile("config", value, call.line, chosen))
        elif word in {"--profile", "--workflow-profile"} and call.name == "snakemake":
            call.program.files += [RunFile("config", f"{value}/{name}", call.line) for name in _PROFILE]


def makes(call: Command) -> None:
    """make: the recipes of its goals."""
    path, folder, goals = "", "", []
    rest = iter(call.rest)
    for word in rest:
        if word in {"-f", "--file", "-C", "--directory"}:
            path, folder = (next(rest, ""), folder) if "f" in word else (path, next(rest, ""))
        elif word.startswith(("--file=", "--makefile=", "--directory=")):
            value = word.partition("=")[2]
            path, folder = (path, value) if word.startswith("--d") else (value, folder)
        elif word not in {"-j", "-l", "-o", "-W"} and not word.isdecimal():
            goals.append(word)
    if folder:
        call.program.folders.append(folder)
    for name in [path] if path else ["GNUmakefile", "makefile", "Makefile"]:
        call.program.files.append(RunFile("make", f"{folder}/{name}" if folder else name, call.line, tuple(goals)))


def unit(call: Command) -> None:
    """systemd-run, which may start a service again."""
    for word in call.rest:
        restart = re.search(r"Restart=(\S+)", word)
        if restart is not None and restart[1] != "no":
            call.program.find("auto-retry", f"it runs a service with {restart[0]}", call.line)


def starts_work(call: Command) -> None:
    """A call of one of these programs."""
    if call.name in {"make", "gmake"}:
        makes(call)
    elif call.name == "systemd-run":
        unit(call)
    else:
        workflows(call)
