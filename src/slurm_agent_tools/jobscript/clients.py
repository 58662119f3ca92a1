"""What a script's calls of Slurm's own commands mean: job steps and questions pass, jobs of their own do not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slurm_agent_tools.jobscript.program import File, Program, Text
from slurm_agent_tools.jobscript.words import OWN_JOB, SELF, TAME, unreadable
from slurm_agent_tools.jobscript.wrappers import WRAPPERS, behind

_SUBMITTING = "sbatch salloc qsub bsub msub scrontab crontab at strigger qlaunch condor_submit"
SUBMITTERS = frozenset(_SUBMITTING.split())
_ASKING = frozenset({"--help", "-h", "--version", "-V", "--usage", "-l", "--list"})
_READING = (
    "show",
    "ping",
    "help",
    "version",
    "listpids",
    "getaddrs",
    "write",
    "wait_job",
    "pidinfo",
    "hostname",
    "details",
)
_RETRYING = ("requeue", "requeuehold")
INSIDE = ("SLURM_JOB_ID", "SLURM_JOBID")


def submits(program: Program, name: str, rest: Sequence[str], line: int, *, script: str) -> None:
    """sbatch and its like. `script` is the name of the script that is read, for resubmission of itself."""
    if rest and rest[0] in (_ASKING if name == "crontab" else _ASKING - {"-l"}):
        return
    program.find("direct-submission", f"it runs {name}", line)
    if name == "salloc":
        program.find("interactive", "it runs salloc, which waits for a terminal", line)
    rest = [program.copied.get(word.rpartition("/")[2], word) for word in rest]
    if any(SELF in word or (script and word.rpartition("/")[2] == script) for word in rest):
        program.find("auto-retry", "it submits itself again", line)
    if any("afternotok" in word or "afterany" in word for word in rest):
        program.find("auto-retry", f"it runs {name} for when this job has ended", line)
    for index, word in enumerate(rest):
        if word.startswith("--wrap"):
            text = word.partition("=")[2] or "".join(rest[index + 1 : index + 2])
            program.texts.append(Text("shell", text, line))


def controls(program: Program, rest: Sequence[str], line: int) -> None:
    """scontrol: everything but looking. Its verbs may be abbreviated."""
    verbs = [word for word in rest if not word.startswith("-") or word == "-"]
    verb = verbs[0].lower() if verbs else ""
    if not verb:
        if not any(word in _ASKING for word in rest):
            program.find("direct-submission", "it runs scontrol with commands from its input", line)
    elif any(word.startswith(verb) for word in _RETRYING) and verb not in {"r", "re"}:
        program.find("auto-retry", f"it runs scontrol {verb}", line)
    elif unreadable(verb):
        program.opaque("it runs scontrol with a computed command", line)
    elif not any(word.startswith(verb) for word in _READING):
        program.find("direct-submission", f"it runs scontrol {verb}, which changes jobs or the cluster", line)


def administers(program: Program, rest: Sequence[str], line: int) -> None:
    """sacctmgr: everything but looking."""
    verbs = [word.lower() for word in rest if not word.startswith("-")]
    if verbs and not any(word.startswith(verbs[0]) for word in ("show", "list", "ping", "help", "version", "dump")):
        program.find("direct-submission", f"it runs sacctmgr {verbs[0]}, which changes the cluster", line)


def cancels(program: Program, rest: Sequence[str], line: int) -> None:
    """scancel of anything but the job itself; without words it gets the jobs from elsewhere (xargs)."""
    options = [word for word in rest if word.startswith("-")]
    jobs = [
        word for word in rest if not word.startswith("-") and not re.fullmatch(r"(SIG)?[A-Z]{3,6}\d?|\d{1,2}", word)
    ]
    broad = [
        word
        for word in options
        if re.match(r"(-[untpAqwj](?![a-z])|--(user|name|state|partition|account|qos|me))", word)
    ]
    if not rest or broad or any(OWN_JOB not in word and not set(word) <= {TAME, "_"} for word in jobs):
        program.find("direct-submission", "it runs scancel on other jobs", line)


def steps(program: Program, words: Sequence[str], line: int, *, outside: bool) -> None:
    """srun: a job step, unless it wants a terminal or leaves the job. `outside`: the job's id was taken away."""
    end = behind(words, 0, WRAPPERS["srun"])
    options = words[1:end]
    if any(re.match(r"--pty?(=|$)", word) for word in options):
        program.find("interactive", "it runs srun --pty, which waits for a terminal", line)
    if outside:
        program.find("direct-submission", "it runs srun outside of its job, which makes a new one", line)
    for index, word in enumerate(options):
        if re.match(r"--jobid(=|$)", word):
            value = word.partition("=")[2] or "".join(options[index + 1 : index + 2])
            if not any(sign in value for sign in (OWN_JOB, TAME)):
                program.find("direct-submission", "it runs srun in another job", line, "approve")
    if "--multi-prog" in options and end < len(words):
        program.files.append(File("multi-prog", words[end], line))


def leaves(words: Sequence[str], position: int) -> bool:
    """Whether `env` takes the job's id away from the srun behind it."""
    own = list(words[:position])
    cleared = any(word in {"-i", "-", "--ignore-environment"} for word in own)
    taken = any(
        name in word for word in own for name in INSIDE if word.startswith(("-u", "--unset", "SLURM_")) or word == name
    )
    return bool(own) and own[0].rpartition("/")[2] == "env" and (cleared or taken)


def unsets(words: Sequence[str]) -> bool:
    """Whether a command takes the job's id away for all that follows."""
    return words[0] == "unset" and any(word in INSIDE for word in words[1:])
