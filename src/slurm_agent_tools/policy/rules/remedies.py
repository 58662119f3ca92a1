"""The fixed forms in which a remedy says what to change, so that whoever reads it alone can do just that.

A remedy is one way, or several, each behind a line that begins with `Or` and ends with a colon. A way is steps:
`Replace line 3 (`...`) by:` and the new lines, `Delete line 3 (`...`).`, `Add:` and lines that go behind the first one,
`Call again with NAME="VALUE".`, `Call again without the argument NAME.`, `Run `COMMAND`.`. A line of another file of
the project is `line 3 of FILE (`...`), indented like it,`: how far in it stands is not shown. Where no edit of a line
keeps the work, `Change line 3 (`...`) yourself: WORDS.` says what to do. What else is said follows a step on the same
line, or in a line that begins with `Note:`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from slurm_agent_tools.models import sbatch_options
from slurm_agent_tools.models.request import Directive, Evidence
from slurm_agent_tools.scripts.directive_lines import split

WHY_NEEDED = "<why this job needs it>"

WHAT_CHANGED = "<what changed outside the script: the code, a package, the data, a node>"

WHY_TWICE = "<why the same work twice>"

PLACEHOLDERS = (WHY_NEEDED, WHAT_CHANGED, WHY_TWICE)

_SHOWN, _MANY = 120, 3

# What an argument of submit_job is called, by the option that it becomes.
_ARGUMENTS = {
    "job-name": "job_name",
    "partition": "partition",
    "time": "time_limit",
    "dependency": "dependency",
    "array": "array",
}


def ways(first: str, *others: tuple[str, str]) -> str:
    """The first way and the others, each with what leads to it, like `give a reason`."""
    return "\n".join([first, *(f"Or {lead}:\n{way}" for lead, way in others)])


def without_reasons(remedy: str) -> str:
    """The remedy without the ways that give a reason, for a policy to which no reason is enough."""
    kept = [
        way for way in re.split(r"\n(?=Or [^\n]*:\n)", remedy) if not re.match(r"Or give your reason[^\n]*:\n", way)
    ]
    return "\n".join(kept)


def call_again(name: str, value: str) -> str:
    """The step that repeats the call with an argument."""
    return f'Call again with {name}="{value}".'


def note(text: str) -> str:
    """A line that explains and changes nothing."""
    return f"Note: {text}"


def edit(places: Sequence[Evidence], lines: Sequence[str], *, script: str | None = None) -> str:
    """Put `lines` in place of these, which lie in one file; `script`: the file that needs no name."""
    where = ", ".join(f"line {place.line}" for place in places)
    shown = [f"`{_short(place.text.strip())}`" for place in places]
    told = "; ".join(shown) if len(shown) <= _MANY else f"{shown[0]} to {shown[-1]}"
    elsewhere = script is not None and places[0].file != script
    where += f" of {places[0].file} ({told}), indented like it," if elsewhere else f" ({told})"
    action = f"Replace {where} by:" if lines else f"Delete {where}."
    return "\n".join([action, *lines])


def in_words(places: Sequence[Evidence], what: str, *, script: str | None = None) -> str:
    """What to do about these lines where no literal edit keeps the work; `what`: one sentence without its end."""
    where = ", ".join(f"line {place.line}" for place in places)
    told = "; ".join(f"`{_short(place.text.strip())}`" for place in places)
    elsewhere = f" of {places[0].file}" if script is not None and places[0].file != script else ""
    return f"Change {where}{elsewhere} ({told}) yourself: {what}."


def _short(text: str) -> str:
    text = re.sub(r"[\x00-\x1f\x7f]", " ", text)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def replace(directives: Sequence[Directive], *lines: str) -> str:
    """How to put the exact `lines` in place of these options; without lines, how to delete them.

    Other options on the same lines are kept.
    """
    stated = [d for d in directives if d.source != "pinned"]
    places = sorted({d.evidence for d in stated if d.source == "script"}, key=lambda place: place.line)
    words = [_argument(d, lines) for d in stated if d.source == "argument"]
    if places:
        words.append(edit(places, [*_kept(places, {d.option for d in stated}), *lines]))
    elif not words and lines:
        words.append("\n".join(["Add:", *lines]))
    return "\n".join(dict.fromkeys(words))


def with_reason(directives: Sequence[Directive], line: str) -> str:
    """The same with a written reason: on the line, or where the call states the option, in the call."""
    way = replace(directives, f"{line}  # JUSTIFIED: {WHY_NEEDED}")
    return way if f"# JUSTIFIED: {WHY_NEEDED}" in way else f"{way}\n{call_again('justification', WHY_NEEDED)}"


def _kept(places: Sequence[Evidence], dropped: set[str]) -> list[str]:
    """What else stands on these lines, each as a line of its own, with its comment."""
    found = []
    for place in places:
        try:
            words, comment = split(place.text.removeprefix("#SBATCH"))
            read = sbatch_options.read(words)
        except ValueError:  # a line that sbatch refuses has no other options
            continue
        rest = [spelled(option.name, value) for option, value in read if option.name not in dropped]
        behind = f"  # {comment.strip()}" if comment.strip() else ""
        found += [f"#SBATCH {' '.join(rest)}{behind}"] if rest else []
    return found


def spelled(name: str, value: str | None) -> str:
    """One option as it stands on a line."""
    if value is None:
        return f"--{name}"
    plain = re.fullmatch(r"[\w@%+=:,./\[\]-]+", value) is not None
    return f"--{name}={value}" if plain else f"--{name}={json.dumps(value, ensure_ascii=False)}"


def _argument(directive: Directive, lines: Sequence[str]) -> str:
    name = _ARGUMENTS.get(directive.option, directive.option)
    for line in lines:
        head, sign, value = line.partition(f"--{directive.option}=")
        if sign and head.strip() == "#SBATCH":
            return call_again(name, value.split("  #")[0].strip())
    return f"Call again without the argument {name}."
