"""Does advice keep the work? Follows the first way of each remedy of a script, word for word, and looks at what is left.

`scripts/kept_work.py` does it over a folder of scripts.

What holds after each round: bash can parse the script, every command that was not the violation is there in its place,
one that does work is left, and the next answer allows the script or names something new.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from tests.unit.policy.applying import Request, apply, steps, ways
from tests.unit.scripts.project import ROOT, MemoryFiles

from slurm_agent_tools.models.decision import Decision, RuleDecision
from slurm_agent_tools.models.request import ScriptLayout, ScriptReading, ShellCommand, ShellWord
from slurm_agent_tools.policy.evaluate import EvaluationContext, evaluate
from slurm_agent_tools.policy.loading import LoadedPolicy, load, shipped
from slurm_agent_tools.scripts.reader import parse, read_script
from slurm_agent_tools.scripts.reading_state import NeedShell
from slurm_agent_tools.scripts.script_layout import layout

LOADED = load(shipped())
REFUSED = ("justify", "approve", "deny")
ROUNDS = 2
SHARED = re.compile(r"srun -n1 (?:-c\d+ )?--exact (?:--gpus(?:-per-node)?=1 )+(?:--mem=\w+ )?")

SUBMITTING = {"sbatch", "salloc", "scontrol", "scancel", "sacctmgr"}
TRYING = {
    "sleep", "echo", "printf", "break", "continue", "exit", "return", "true", "false", "date", "let", "[", "test",
}  # fmt: skip
NO_WORK = TRYING | SUBMITTING | {":", "cd", "module", "source", ".", "set", "mkdir", "hostname", "wait", "nvidia-smi"}
DEVICES = re.compile(r"(?:CUDA|NVIDIA|HIP|ROCR)_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|ZE_AFFINITY_MASK")
VALUE = r"""(?:"[^"]*"|'[^']*'|[^\s;&)"'])*"""
NUMBERED = re.compile(r"(?i)\b(?:cuda|hip|xpu|gpu):\d+|^--?[\w-]*(?:gpu|device|include)[\w-]*|^\W*\d+(?:,\d+)*\W*$")
OPTIONS = re.compile(r"^--(?:retries|restart-times|max[-_]restarts?)|^-process\.|^\d+$|^--pty")
WRAPPERS = {"nohup", "env", "timeout", "exec", "time", "nice", "xargs", "find", "sudo", "command"}
LEAVES = {"call", "declaration", "test", "arithmetic"}
OUTER = {"for", "while", "until", "if", "case", "function", "subshell"}


@dataclass
class Followed:
    """What came of one script. `rounds`: how many it took to be allowed, None where it is not."""

    name: str
    rounds: int | None = None
    words: int = 0
    person: int = 0
    remedies: int = 0
    broken: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    text: str = ""
    first: str = ""

    @property
    def told(self) -> bool:
        """Allowed, or told in words what to do, or sent to a person: never a literal edit that does not help."""
        return self.rounds is not None or bool(self.words or self.person)


async def judge(
    files: Mapping[str, str], script: str, loaded: LoadedPolicy, justification: str | None = None
) -> tuple[ScriptReading, Decision]:
    """The reading of a script and the decision on it, without a cluster."""
    reading = await read_script(
        files[script].encode("utf-8", "surrogateescape"),
        script,
        project=ROOT,
        files=MemoryFiles({f"{ROOT}/{path}": text.encode("utf-8", "surrogateescape") for path, text in files.items()}),
    )
    return reading, evaluate(reading, EvaluationContext(loaded, ROOT, justification=justification))


async def follow(
    text: str, files: Mapping[str, str] | None = None, script: str = "scripts/job.sh", loaded: LoadedPolicy = LOADED
) -> Followed:
    """Follow the answers to a script for two rounds; `files`: what the project holds besides."""
    held = {**(files or {}), script: text}
    done, reason = Followed(script, first=text), None
    reading, decision = await judge(held, script, loaded)
    for number in range(ROUNDS + 1):
        done.text = held[script]
        done.left = [f"{one.id}: {one.message}" for one in decision.rules if one.outcome in REFUSED]
        if decision.verdict == "allow":
            done.rounds = number
            return done
        if number == ROUNDS or not _literal(spoken(decision)):
            break
        request = Request(dict(held), script)
        if number == 0:
            _count(done, spoken(decision))
        try:
            apply([ways(one.remedy or "")[0] for one in spoken(decision)], request)
        except AssertionError as error:
            done.broken.append(f"round {number + 1}: cannot be followed: {error}")
            return done
        reason = request.justification or reason
        after, again = await judge(request.files, request.script, loaded, reason)
        done.broken += [f"round {number + 1}: {what}" for what in await broken(held[script], request.text, reading)]
        done.broken += [f"round {number + 1}: says the same again: {what}" for what in _repeated(decision, again)]
        held, script, reading, decision = request.files, request.script, after, again
    if not done.remedies:
        _count(done, spoken(decision))
    return done


def spoken(decision: Decision) -> list[RuleDecision]:
    """The rules that speak and say what to do."""
    return [one for one in decision.rules if one.outcome in (*REFUSED, "warn") and one.remedy]


async def mended(text: str, script: str) -> str:
    """The whole script after the first way of each remedy was followed, once."""
    request = Request({script: text}, script)
    _, decision = await judge(request.files, script, LOADED)
    apply([ways(one.remedy or "")[0] for one in spoken(decision)], request)
    return request.text


def _literal(results: Sequence[RuleDecision]) -> bool:
    return any(_edits(one) for one in results)


def _edits(result: RuleDecision) -> list[str]:
    found = steps(ways(result.remedy or "")[0])
    return [match[0] for match, _ in found if not (match["note"] or match["words"] or match["person"])]


def _lines(result: RuleDecision) -> set[int]:
    """The lines of the script that the first way of a remedy changes."""
    found = steps(ways(result.remedy or "")[0])
    olds = [match["old"] or match["gone"] or "" for match, _ in found if not (match["old_file"] or match["gone_file"])]
    return {int(number) for old in olds for number in re.findall(r"\d+", old)}


def _count(done: Followed, results: Sequence[RuleDecision]) -> None:
    for one in results:
        found = steps(ways(one.remedy or "")[0])
        done.remedies += 1
        done.words += any(match["words"] for match, _ in found)
        done.person += any(match["person"] for match, _ in found)


def _repeated(before: Decision, after: Decision) -> list[str]:
    """Rules that say of the same lines what they said, though their edits were all done."""
    said = {one.id: one for one in spoken(before)}
    found = []
    touched = Counter(place for one in said.values() for place in _lines(one))
    shared = {place for place, count in touched.items() if count > 1}
    for one in after.rules:
        old = said.get(one.id)
        if one.outcome not in REFUSED or old is None or not old.remedy or "yourself:" in old.remedy:
            continue
        if "Ask a person" in old.remedy or not _edits(old):
            continue
        if shared & _lines(old):
            continue  # another rule's edit of these lines was done first
        if one.message == old.message and [e.text for e in one.evidence] == [e.text for e in old.evidence]:
            found.append(f"{one.id}: {one.message}")
    return found


# --- the property ------------------------------------------------------------------------------------------------


async def broken(before: str, after: str, reading: ScriptReading) -> list[str]:
    """What following a remedy broke in a script; empty where nothing is."""
    if not parses(before):
        return []
    if not parses(after):
        return [f"bash cannot parse it any more: {_complaint(after)}"]
    old, new = await _layout(before), await _layout(after)
    if old is None or new is None or reading.layout is None:
        return []
    lost = missing(Text(before, old), Text(after, new), reading)
    if any(_works(one) for one in old.commands) and not any(_works(one) for one in new.commands):
        lost.append("nothing that does work is left")
    return lost


def parses(text: str) -> bool:
    return _bash(text).returncode == 0


def _complaint(text: str) -> str:
    return _bash(text).stderr.decode("utf-8", "replace").strip()[:200]


@cache  # what one round makes of a script is where the next one begins
def _bash(text: str) -> subprocess.CompletedProcess[bytes]:
    data = text.encode("utf-8", "surrogateescape")
    return subprocess.run(["/bin/bash", "-n"], input=data, capture_output=True, check=False)


async def _layout(text: str) -> ScriptLayout | None:
    data = text.encode("utf-8", "surrogateescape")
    tree = await parse(NeedShell(data, "bash", "", 1, offsets=True))
    return layout(tree, data) if isinstance(tree, dict) else None


@dataclass(frozen=True)
class Signature:
    """The words of a command, without what stands in `$(...)` of theirs, and the loops and branches around it."""

    words: tuple[str, ...]
    outer: tuple[tuple[str, str, int, bool], ...]  # kind, name, line, whether it may be gone

    def like(self, other: Signature, rules: set[str]) -> bool:
        """The same command, but for what chooses devices, opens a terminal or asks for another try."""
        if "interactive" in rules and other.words == ("wait",) and self.words[0] in {"sleep", "tail"}:
            return True
        return self.words == other.words or _bare(self.words, rules) == _bare(other.words, rules)

    def placed(self, other: Signature, lines: Mapping[int, set[str]]) -> bool:
        """Whether `other` stands in the same loops and branches; a loop of tries, with its branches, may be gone."""
        left = [(kind, name) for kind, name, _, gone in other.outer if not gone]
        tried = False
        for kind, name, line, goes in self.outer:
            if left and left[0] == (kind, name):
                left.pop(0)
            elif "auto-retry" in lines.get(line, ()) and kind in {"for", "while", "until"}:
                tried = True
            elif not goes and not (tried and kind in {"if", "right of"}):
                return False
        return not left


def missing(old: Text, new: Text, reading: ScriptReading) -> list[str]:
    """Commands that were no violation and are gone, changed or elsewhere."""
    lines: dict[int, set[str]] = {}
    for finding in reading.findings:
        if finding.evidence.file == reading.path:
            lines.setdefault(finding.evidence.line, set()).add(finding.rule)
    empty = lambda one: [word.text for word in one.words] == [":"]  # noqa: E731 - one line
    left = [one for one in (new.signature(leaf, empty) for leaf in new.leaves()) if one.words != (":",)]
    at, lost = 0, list[str]()
    for one in old.leaves():
        wanted = old.signature(one, lambda leaf: empty(leaf) or _may_go(old.layout, leaf, lines))
        if wanted.words == (":",):
            continue
        rules = _rules(old.layout, one, lines)
        if at < len(left) and wanted.like(left[at], rules) and wanted.placed(left[at], lines):
            at += 1
        elif not _may_go(old.layout, one, lines):
            lost.append(f"line {one.line}: `{' '.join(wanted.words)}` is gone or stands elsewhere")
            break
    if not lost and at < len(left):
        lost.append(f"`{' '.join(left[at].words)}` was not there before")
    return lost


@dataclass(frozen=True)
class Text:
    """A script and the places of its commands."""

    text: str
    layout: ScriptLayout

    def leaves(self) -> list[ShellCommand]:
        return [one for one in self.layout.commands if one.kind in LEAVES]

    def signature(self, one: ShellCommand, goes: Callable[[ShellCommand], bool]) -> Signature:
        """How a command stands there; what hangs on a command that `goes` hangs on nothing."""
        inner = [child for child in self.layout.children(one) if child.role == "inside"]
        words = [self._outside(word, inner) for word in (*one.assigns, *one.words)]
        outer, child = list[tuple[str, str, int, bool]](), one
        for around in self.layout.around(one):
            if around.kind in OUTER:
                outer.append((around.kind, around.name, around.line, False))
            elif around.kind in {"and", "or"} and child.role == "right":
                outer.append(("right of", around.kind, around.line, self._gone(around, goes)))
            child = around
        return Signature(tuple(words) or (one.kind,), tuple(reversed(outer)))

    def _gone(self, joined: ShellCommand, goes: Callable[[ShellCommand], bool]) -> bool:
        """Whether nothing is left of the first of two joined commands."""
        left = self.layout.children(joined)[0]
        return all(goes(leaf) for leaf in (left, *self.layout.within(left)) if leaf.kind in LEAVES)

    def _outside(self, word: ShellWord, inner: Sequence[ShellCommand]) -> str:
        text, at = "", word.start
        for child in inner:
            if word.start <= child.start < word.end:
                text += self.text[at : child.start]
                at = child.stop
        return re.sub(r"\s+(?=[`)])", "", text + self.text[at : word.end])


def _rules(of: ScriptLayout, one: ShellCommand, lines: Mapping[int, set[str]]) -> set[str]:
    found = set[str]()
    for line in (one.line, *(around.line for around in of.around(one))):
        found |= lines.get(line, set())
    everywhere = {"cuda-visible-devices"} & set().union(*lines.values())  # a setting counts for what follows it
    return (
        found
        | everywhere
        | {rule for number, rules in lines.items() if one.line <= number <= one.line + 40 for rule in rules}
    )


def _bare(words: Sequence[str], rules: set[str]) -> list[str]:
    text = " ".join(words)
    if "cuda-visible-devices" in rules:
        text = re.sub(rf"(?:(?:-x|-e|--env) |--env=|-e|export |,)?(?:{DEVICES.pattern})={VALUE}[;&\s]*", " ", text)
        text = re.sub(r"[\"'=(){}]|(?<=\$)\s+", " ", SHARED.sub("", text))
    if "device-index" in rules:
        text = re.sub(r"\b(cuda|hip|xpu|gpu):\d+", r"\1", text)
        text = re.sub(r"(device\(.cuda.), \d+", r"\1", text)
        text = re.sub(r"(?:--?[\w-]*(?:gpu|device|include)[\w-]*[= ]|\b[\w.]*(?:device|gpu)\w*=)\S*\d\S*", "", text)
    if {"auto-retry", "interactive"} & rules:
        text = re.sub(r"--(?:retries|restart-times|max[-_]restarts?)[= ]\d+|--pty(?:=\S+)?|-process\.\S+", "", text)
    return text.split()


def _may_go(of: ScriptLayout, one: ShellCommand, lines: Mapping[int, set[str]]) -> bool:
    """Whether a command is itself what was found, or stands between the tries of a loop that was."""
    here = {rule for number, rules in lines.items() if one.line <= number <= one.line + 3 for rule in rules}
    words = [word.text for word in one.words]
    name = next((word.rpartition("/")[2] for word in words if word.rpartition("/")[2] not in WRAPPERS), "")
    if _within_setting(of, one):
        return True
    if name in SUBMITTING or name.startswith("$") or any(word in SUBMITTING for word in words[:4]):
        return bool({"direct-submission", "auto-retry", "interactive"} & _rules(of, one, lines))
    if "cuda-visible-devices" in here and (not words or one.kind == "declaration"):
        return one.kind == "arithmetic" or any(DEVICES.match(word.text) for word in one.assigns)
    if "interactive" in here and "--pty" in words:
        return True
    loops = [around for around in of.around(one) if "auto-retry" in lines.get(around.line, ())]
    if (loops and (not words or name in TRYING or one.role == "inside")) or _behind_tries(of, one, lines):
        return True
    return "auto-retry" in here and ("or" in {around.kind for around in of.around(one)} or "$0" in " ".join(words)
                                     or name == "trap")  # fmt: skip


def _behind_tries(of: ScriptLayout, one: ShellCommand, lines: Mapping[int, set[str]]) -> bool:
    """`exit 1` behind a loop of tries: for when all of them failed."""
    before = [other for other in of.commands[: one.index] if other.parent == one.parent and other.branch == one.branch]
    retried = any("auto-retry" in lines.get(other.line, ()) for other in before if other.kind in OUTER)
    return retried and bool(one.words) and one.words[0].text in TRYING


def _within_setting(of: ScriptLayout, one: ShellCommand) -> bool:
    """Whether a command only computes the value of a device variable."""
    return any(DEVICES.match(word.text) for around in of.around(one) for word in around.assigns)


def _works(one: ShellCommand) -> bool:
    return one.kind == "call" and bool(one.words) and one.words[0].text not in NO_WORK
