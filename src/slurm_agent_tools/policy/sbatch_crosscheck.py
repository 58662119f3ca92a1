"""Our reading of a request beside sbatch's own, as `sbatch -v` prints it: where they differ, one of them is wrong.

sbatch prints values in normal forms of its own (memory in MB, times as D-HH:MM:SS, paths from the root). Both sides are
brought to one form here by the rules of sbatch(1), as observed on 22.05, 24.11 and 26.05; what has no rule is compared
letter by letter.
"""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from slurm_agent_tools.models import sbatch_options
from slurm_agent_tools.models.decision import Decision, RuleDecision
from slurm_agent_tools.models.geometry import LAYOUT, layout
from slurm_agent_tools.models.request import Directive, JobRequest

Shown = Mapping[str, str]

Form = Callable[[str], object]

_ASKED = frozenset({"test-only", "verbose"})  # of the question itself

# Options that share one setting: sbatch shows it under the name of each that was given.
_SHARED = (frozenset({"requeue", "no-requeue"}), frozenset({"exclusive", "oversubscribe"}))

_PATHS = frozenset({"chdir", "output", "error", "input"})

# sbatch shows them as times of the clock, in its own words, or added up with earlier ones. What they say does not bear
# on the size of a job: that they are there is all that counts.
_PRESENT = frozenset({"begin", "deadline", "profile", "cpu-freq", "power", "mail-type", "kill-on-invalid-dep"})

_INSTEAD_OF_HINT = frozenset({"ntasks-per-core", "threads-per-core", "extra-node-info"})

# What an option means that was given without its optional value.
_BARE = {"exclusive": "exclusive", "nice": "100", "propagate": "ALL", "get-user-env": "0"}

_NAMES = {row.spelled: row.name for row in sbatch_options.TABLE}

_SIGNAL_SECONDS = 60  # how long before the end --signal is sent unless it says


def differences(request: JobRequest, shown: Sequence[Shown] | None) -> list[str]:
    """Each option that sbatch reads otherwise, in words; empty where both read the same.

    `request` holds every option, those of the command line too; `shown` is one mapping for each component, None where
    sbatch's answer cannot be read, which is a difference by itself.
    """
    if shown is None:
        return ["sbatch did not show its options in a form that can be read"]
    if any("\n" in (directive.value or "") for directive in request.directives):
        return ["a value holds a line break, so what sbatch shows of it cannot be told from other options"]
    if len(shown) != request.components:
        return [f"sbatch reads {len(shown)} components, the guard {request.components}"]
    if request.components > 1:
        return ["the options of several components cannot be compared"]
    return _compared(request, shown[0])


def _compared(request: JobRequest, shown: Shown) -> list[str]:
    """The last of each option, but for those that sbatch ignores in a script, and --hint beside what it excludes."""
    ignored = _ASKED | sbatch_options.EARLY
    expected = {directive.option: directive for directive in request.directives if directive.option not in ignored}
    if not expected.keys().isdisjoint(_INSTEAD_OF_HINT):
        expected.pop("hint", None)
    seen = {_NAMES.get(name, name): text for name, text in shown.items() if name not in _ASKED}
    differing = []
    for name in sorted(expected.keys() | seen.keys()):
        if name not in seen:
            differing.append(f"--{name}: the guard reads {_said(expected[name].value)}, sbatch does not see it")
        elif name not in expected:
            differing.append(f"--{name}: sbatch reads {_said(seen[name])}, the guard does not see it")
        elif not _same(expected[name], seen[name], request):
            differing.append(
                f"--{name}: the guard reads {_said(expected[name].value)}, sbatch reads {_said(seen[name])}"
            )
    return differing


def _said(text: str | None) -> str:
    return "it" if text is None else repr(text if len(text) <= 100 else f"{text[:97]}...")


def _same(directive: Directive, seen: str, request: JobRequest) -> bool:
    for group in _SHARED:
        if directive.option in group:
            last = request.find(*group)[-1]
            return (last.value or last.option).lower() == seen.lower()
    if directive.option in _PRESENT or (directive.option in LAYOUT and request.find("hint")):
        return True  # --hint puts numbers of its own in the place of a layout
    text = _BARE.get(directive.option, directive.value or "") if not directive.value else directive.value
    if directive.value is None and directive.option not in _BARE:
        text = "set"
    if directive.option in _PATHS:
        return _same_path(directive.option, text, seen)
    if directive.option in LAYOUT:
        return _same_part(directive.option, request, seen)
    if directive.option in _BY_REQUEST:
        return _BY_REQUEST[directive.option](request, text, seen)
    form = _FORMS.get(directive.option, str)
    return _both(form, text) == _both(form, seen)


def _same_signal(request: JobRequest, text: str, seen: str) -> bool:
    """Flags add up over all that were given."""
    try:
        flags = frozenset[str]().union(*(_signal(directive.value or "")[0] for directive in request.find("signal")))
        return (flags, *_signal(text)[1:]) == _signal(seen)
    except ValueError:
        return text == seen


def _same_nodes(request: JobRequest, _: str, seen: str) -> bool:
    return _both(sbatch_options.nodes, seen) == (request.nodes, request.nodes_max)


def _same_list(request: JobRequest, text: str, seen: str) -> bool:
    """sbatch drops nodes from the list for which there is no task."""
    if request.ntasks is not None and request.ntasks < sbatch_options.listed_nodes(text):
        return sbatch_options.listed_nodes(seen) == request.ntasks
    return text == seen


def _same_layout(request: JobRequest, _: str, seen: str) -> bool:
    """-B shows the numbers that it shares with the options for each, and nothing for one that is not set."""
    sockets, *others = layout(request)
    whole = f"{sockets or ''}" + "".join(f":{count}" for count in others if count)
    return seen == (whole or "unset")


def _same_part(name: str, request: JobRequest, seen: str) -> bool:
    """One number of the layout; -B clears it, which 22.05 shows as a number below zero."""
    count = layout(request)[LAYOUT.index(name)]
    return seen.startswith("-") if count is None else seen == str(count)


def _same_mincpus(request: JobRequest, text: str, seen: str) -> bool:
    """sbatch makes it at least the CPUs of one task."""
    return _both(int, seen) == max(int(text), request.cpus_per_task or 1)


def _both(form: Form, text: str) -> object:
    """The normal form; a text that has none stands for itself."""
    try:
        return form(text)
    except ValueError:
        return text


def _same_path(option: str, text: str, seen: str) -> bool:
    """sbatch puts the working folder in front, which it alone knows by its real name; `none` is no file."""
    if option != "chdir" and text.lower() == "none":
        return seen == "/dev/null"
    return seen == text if text.startswith("/") else seen.startswith("/") and seen.endswith(f"/{text}")


def _memory(text: str) -> int:
    """22.05 prints no size as `0?`, and petabytes, which it does not read."""
    if text.endswith("P"):
        return sbatch_options.memory(f"{text[:-1]}T") * 1024
    return sbatch_options.memory(text.removesuffix("?"))


def _gres(text: str) -> tuple[str, ...]:
    """sbatch writes `gres:` (later `gres/`) in front of each item."""
    return tuple(re.sub(r"^gres[:/]", "", item.strip()) for item in text.split(","))


def _kinds(text: str) -> tuple[str, ...]:
    """Kinds of GPUs with their numbers, which 26.05 puts into an order of its own; it shows none as `(null)`."""
    return tuple(sorted(item.strip() for item in text.replace("(null)", "0").split(",")))


def _switches(text: str) -> int:
    """How many; how long to wait for them may also come from an earlier --switches."""
    return int(text.partition("@")[0])


def _signal(text: str) -> tuple[frozenset[str], str, int]:
    """`B:10@30` as flags, name and seconds before the end."""
    flags, _, rest = text.rpartition(":")
    name, _, seconds = rest.partition("@")
    named = signal.Signals(int(name)).name if name.isdecimal() else name
    return frozenset(flags.upper()), named.upper().removeprefix("SIG"), int(seconds or _SIGNAL_SECONDS)


def _lower(text: str) -> str:
    return text.lower()


def _first(text: str) -> str:
    return text[:1].lower()


_BY_REQUEST: Mapping[str, Callable[[JobRequest, str, str], bool]] = {
    "signal": _same_signal,
    "extra-node-info": _same_layout,
    "nodes": _same_nodes,
    "nodelist": _same_list,
    "mincpus": _same_mincpus,
}

_FORMS: Mapping[str, Form] = {
    **dict.fromkeys(("mem", "mem-per-cpu", "mem-per-gpu", "tmp"), _memory),
    **dict.fromkeys(("time", "time-min", "delay-boot"), sbatch_options.time_limit),
    **dict.fromkeys(
        (
            "ntasks", "ntasks-per-node", "ntasks-per-gpu", "ntasks-per-core", "ntasks-per-socket", "ntasks-per-tres",
            "cpus-per-task", "cpus-per-gpu", "mincpus",
            "core-spec", "thread-spec", "nice", "priority", "wait-all-nodes",
        ),
        int,
    ),
    "gres": _gres,
    "gpus-per-task": _kinds,
    "tres-per-task": _gres,
    "switches": _switches,
    "open-mode": _first,
    "distribution": _lower,
    "hint": _lower,
    "gres-flags": _lower,
    "no-kill": lambda text: "unset" if text == "off" else text,
}  # fmt: skip


# --- What comes of a difference ---------------------------------------------------------------------------------------


_RULE = "directives"

_REMEDY = (
    "Write each named option plainly on a line of its own, like `#SBATCH --mem=16G`. If it stays, show this to a"
    " person: a plugin of this site's Slurm may add or change options (cli_filter, SPANK)."
)


def denied(decision: Decision, differences: list[str]) -> Decision:
    """The decision with rule `directives` against the request."""
    message = f"This cluster's sbatch reads the options differently from the guard: {'; '.join(differences)}."
    denied = RuleDecision(id=_RULE, outcome="deny", message=message, observed=len(differences), limit=0, remedy=_REMEDY)
    rules = tuple(denied if rule.id == _RULE else rule for rule in decision.rules)
    return replace(decision, verdict="deny", rules=rules)
