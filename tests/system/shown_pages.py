"""Pages of the documentation that are run: their files are written, their commands typed, their answers compared.

A page takes part by the comment `MARK`. In it a block with a `title` is a file of the project, and in a block of the kind
`console` a line that begins with `$ ` is typed in the project, one with `> ` is an agent's call over MCP; what follows is
the answer. Numbers in an answer may differ, and `...` stands for any text. With UPDATE_PAGES=1 answers that differ are
written into the page.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client
from tests.system.faces import Place

MARK = "<!-- every command and answer of this page is from a run: tests/system/test_pages.py -->"
BLOCK = re.compile(r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
# Numbers, and the first digits of a hash, of which a few of 12 are letters alone or begin with one.
NUMBER = re.compile(r"\d{8}-\d{6}-[0-9a-f]{6}|\b[0-9a-f]{8}(?:[0-9a-f]{4})?\b|\d[\d.,:/T+_-]*")
# A column of jobs' memory: where a job ends within a second or two, Slurm may not have looked at it yet.
MEMORY = re.compile(r"MEMORY USED +(?=TIME USED)|[\d.]+[KMG] of [\d.]+[KMG] +(?=[\d:]+ of )")
# What an answer brought into being: jobs and scripts.
NAME = re.compile(r"(?<=\b[Jj]ob )\d+\b|(?<=job_id=.)\d+|scripts/slurm/generated/[\w-]+\.sh")
WIDTH = 116


@dataclass(frozen=True, slots=True)
class Step:
    """A command of a page, and the answer that is shown."""

    command: str
    answer: str


def pages(folder: Path) -> list[Path]:
    """Those that take part."""
    return [path for path in sorted(folder.rglob("*.md")) if MARK in path.read_text()]


def steps(body: str) -> list[Step]:
    """The commands of a console block, in their order."""
    found = re.split(r"^(?=[$>] )", body, flags=re.MULTILINE)
    assert not found[0].strip(), f"a console block begins with an answer: {found[0]}"
    parts = [one.partition("\n") for one in found[1:]]
    return [Step(command, answer.strip("\n")) for command, _, answer in parts]


def masked(text: str) -> str:
    """The text without its numbers, its line ends and a column that may be missing."""
    return " ".join(NUMBER.sub("N", MEMORY.sub("", text)).split())


def alike(shown: str, given: str) -> bool:
    """Whether an answer is the one that is shown."""
    pattern = re.escape(masked(shown)).replace(re.escape("..."), ".*?")
    return re.fullmatch(pattern, masked(given)) is not None


def told(answer: dict[str, Any]) -> str:
    """What a page shows of a tool's answer: its summary, what decided, and what is proposed."""
    if "error" in answer:
        return f"{answer['error']['message']} {answer['error'].get('hint', '')}".strip()
    lines = [answer["summary"], *(f"added {pin['option']}: {pin['why']}" for pin in answer.get("pinned", []))]
    if "recommendation" in (queue := answer.get("queue") or {}):
        lines.append(f"{queue['recommendation']}: {queue['why']}")
    if answer["status"] == "blocked":
        lines += [f"{rule['id']}: {rule['message']}\n{rule['remedy']}" for rule in answer["decision"]["rules"]]
    if metrics := answer.get("metrics"):
        lines += [f"{name}: {_compared(value)}" for name, value in metrics.items()]
    if diagnosis := answer.get("diagnosis"):
        lines += [diagnosis.get("explanation", ""), *(one["text"] for one in diagnosis.get("evidence", []))]
        lines += [f"Proposed, not sent: {change}"] if (change := diagnosis.get("proposed_change")) else []
    wrapped = [_wrapped(line) for text in lines for line in text.splitlines()]
    return "\n".join(line for lines in wrapped for line in lines)


def _wrapped(line: str) -> list[str]:
    """Broken between words alone: a name that is broken at its hyphen would differ with the length of a job's number."""
    return textwrap.wrap(line, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


def _compared(value: object) -> str:
    """A metric, or what became of it between two results."""
    return f"{value['baseline']} before, {value['target']} now" if isinstance(value, dict) else str(value)


@dataclass
class Run:
    """A page in the middle of being run."""

    place: Place
    client: Client
    names: dict[str, str] = field(default_factory=dict)  # by what the page shows: the real one

    def write(self, title: str, body: str) -> None:
        """A file of the page."""
        path = self.place.project / title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)
        self.place.own()

    async def answer(self, step: Step) -> str:
        """Type one command; what it answers."""
        words = [self._real(word) for word in shlex.split(step.command[2:])]
        return self._typed(words) if step.command.startswith("$ ") else await self._called(words)

    def learn(self, shown: str, given: str) -> None:
        """Jobs and scripts in an answer, which later commands name."""
        self.names |= dict(zip(NAME.findall(shown), NAME.findall(given), strict=False))

    def shown(self, given: str) -> str:
        """An answer with the names that the page has for what is in it."""
        pages = {real: name for name, real in self.names.items()}
        given = NAME.sub(lambda found: pages.get(found[0], found[0]), given)
        return re.sub(r"(?<=[-_])\d+(?=_|\.out)", lambda found: pages.get(found[0], found[0]), given)

    def _real(self, word: str) -> str:
        """A word with the real names of jobs and scripts; in the name of a log the job's number."""
        name, sign, value = word.rpartition("=")
        value = re.sub(r"(?<=-)\d+(?=(_\d+)?\.out$)", lambda found: self.names.get(found[0], found[0]), value)
        return name + sign + self.names.get(value, value)

    def started(self, words: list[str]) -> list[str]:
        """What is started when the words are typed."""
        ours = [sys.executable, "-m", "slurm_agent_tools", *words[1:]]
        return ours if words[0] == "slurm-agent-tools" else words

    def named_as_shown(self, text: str) -> str:
        """What came back, with the page's name of the folder: it has another one in every run."""
        return text.replace(str(self.place.project), "/home/ada/experiments")

    def _typed(self, words: list[str]) -> str:
        done = self.place.run(self.started(words), seconds=300)
        code = f"(exit code {done.returncode})" if done.returncode else ""
        text = "\n".join(part.decode().strip("\n") for part in (done.stdout, done.stderr))
        return self.named_as_shown(f"{text}\n{code}".strip("\n"))

    async def _called(self, words: list[str]) -> str:
        given = dict(word.split("=", 1) for word in words[1:])
        result = await self.client.call_tool(words[0], {name: _value(value) for name, value in given.items()})
        assert result.structured_content is not None, result
        return told(json.loads(self.named_as_shown(json.dumps(result.structured_content))))


def _value(text: str) -> object:
    """What a person writes for an argument: numbers that are names of jobs stay text."""
    try:
        return text if text.isdigit() and len(text) < 3 else json.loads(text)
    except ValueError:
        return text


@dataclass(frozen=True, slots=True)
class Difference:
    """A command whose answer is not the one that is shown."""

    step: Step
    given: str

    def __str__(self) -> str:
        return f"{self.step.command}\n--- shown\n{self.step.answer}\n--- given\n{self.given}"

    def mended(self, text: str) -> str:
        """The page with the answer that was given."""
        shown = f"{self.step.answer}\n" if self.step.answer else ""
        return text.replace(f"{self.step.command}\n{shown}", f"{self.step.command}\n{self.given}\n", 1)


async def run(text: str, page: Run) -> list[Difference]:
    """Run a page from its top to its end."""
    differs = []
    for block in BLOCK.finditer(text):
        if block["title"]:
            page.write(block["title"], block["body"])
        for step in steps(block["body"]) if block["kind"] == "console" else []:
            given = await page.answer(step)
            page.learn(step.answer, given)
            if not alike(step.answer, given):
                differs.append(Difference(step, page.shown(given)))
    return differs
