"""What the guard says about the header made of a `slurm:` section, told by the section's own keys and lines. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from slurm_agent_tools.configs.reading import Config
from slurm_agent_tools.configs.section import option, slurm_section, written
from slurm_agent_tools.replies import Complaint, EvidenceLine, RuleResult

_STEP = re.compile(r"(Replace|Delete) ((?:line \d+(?:, )?)+) \(`.*`\)(?: by:|\.)$")
_ALL = re.compile(r"--([a-z-]+)(?:=(\"(?:[^\"\\]|\\.)*\"|\S+))?")
_SAFE = re.compile(r"[A-Za-z][\w@%+=./-]*|\d+[A-Za-z]+|[1-9]\d*")  # what YAML takes for the text that it is
_WORDS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", "none"})
_REASON = "Note: more than is free needs a written reason: give it when you submit, submit_job has justification."
_OTHER_UNIT = frozenset({"mem_gb"})  # a key whose value is not written as sbatch takes it


def retold(config: Config, rules: Sequence[RuleResult]) -> list[RuleResult]:
    """The same answers with evidence and remedies in the file's words."""
    return [_retold(config, rule) for rule in rules]


def complaint(config: Config, rule: RuleResult) -> Complaint:
    """What a rule, already retold, has against the section."""
    line = rule.evidence[0].line if rule.evidence else config.lines.get("slurm")
    place = rule.evidence[0].text.partition(":")[0] if rule.evidence else "slurm"
    return Complaint(path=place, line=line or None, message=rule.message, remedy=rule.remedy or "")


def _retold(config: Config, rule: RuleResult) -> RuleResult:
    section = slurm_section(config) or {}
    keys = written(section)
    evidence = [_shown(config, keys, place) for place in rule.evidence]
    remedy = None if rule.remedy is None else "\n".join(_lines(config, keys, rule.remedy))
    message = _message(keys, rule.message)
    return rule.model_copy(update={"evidence": evidence, "remedy": remedy, "message": message})


def _message(keys: Sequence[str], text: str) -> str:
    """A message that names lines of the header, with the keys in their place."""

    def named(match: re.Match[str]) -> str:
        key = _key(keys, int(match[1]))
        return match[0] if key is None else f"slurm.{key}: "

    return re.sub(r": #SBATCH [^;]*?(?=; slurm\.|\. An option )", "", re.sub(r"\b[Ll]ine (\d+): ", named, text))


def _key(keys: Sequence[str], line: int) -> str | None:
    return keys[line - 2] if 2 <= line < len(keys) + 2 else None


def _shown(config: Config, keys: Sequence[str], place: EvidenceLine) -> EvidenceLine:
    """`slurm.mem: 64G` and where it stands."""
    key = _key(keys, place.line)
    name = "slurm" if key is None else f"slurm.{key}"
    value = "" if key is None else (slurm_section(config) or {})[key]
    return EvidenceLine(file=place.file, line=config.lines.get(name, 0), text=f"{name}: {value}".rstrip())


def _lines(config: Config, keys: Sequence[str], remedy: str) -> Iterator[str]:
    """A remedy's lines; the ways that write a reason on a line are left out, since the section has no such line."""
    ways = re.split(r"\n(?=Or [^\n]*:\n)", remedy)
    kept = [way for way in ways if not re.match(r"Or give your reason[^\n]*:\n", way)]
    replaced: list[str] = []
    for line in "\n".join(kept).split("\n"):
        step = _STEP.fullmatch(line)
        if step is not None:
            named = [_key(keys, int(number)) for number in re.findall(r"\d+", step[2])]
            replaced = [key for key in named if key is not None]
            yield _step(config, replaced, step[1])
        elif line == "Add:":
            replaced = []
            yield "Add below slurm:"
        elif line.startswith("#SBATCH "):
            yield from (f"  {pair}" for pair in _pairs(config, replaced, line))
        elif not (line.startswith("Note:") and "#SBATCH" in line):
            yield line
    if len(kept) < len(ways):
        yield _REASON


def _step(config: Config, keys: Sequence[str], action: str) -> str:
    places = [(f"slurm.{key}", config.lines.get(f"slurm.{key}")) for key in keys]
    told = ", ".join(place if line is None else f"{place} (line {line})" for place, line in places) or "slurm"
    return f"{action} {told}{' by:' if action == 'Replace' else '.'}"


def _pairs(config: Config, keys: Sequence[str], line: str) -> Iterator[str]:
    """The keys that say the same as a directive line; a key keeps its name where its value stays of its kind."""
    for name, value in _ALL.findall(line.partition("  #")[0]):
        same = (key for key in keys if option(key) == name and key not in _OTHER_UNIT)
        text = json.loads(value) if value.startswith('"') else value
        yield _pair(config.format, next(same, name), text)


def _pair(form: str, key: str, value: str) -> str:
    quoted = json.dumps(value, ensure_ascii=False) if value else "true"
    if form == "JSON":
        return f"{json.dumps(key)}: {quoted}"
    if form == "TOML":
        return f"{key} = {quoted}"
    plain = _SAFE.fullmatch(value) is not None and value.lower() not in _WORDS
    return f"{key}: {value if plain else quoted}"
