"""script-exists, path: the script can be read, and files are written only where the policy says."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slurm_agent_tools.models.request import Directive, Evidence, JobRequest
from slurm_agent_tools.policy.document import Policy, Sizes
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Judgement, Rule, call_again, passed, replace
from slurm_agent_tools.units import human_memory

# --- script-exists: there is a batch script inside the project, and it could be read ----------------------------------

_WHY_READ = "Only what was read can be checked, and only what was checked is submitted."

_WRITE_ONE = "Call generate_script, which writes one for a command, then call again with its path."


def _judge_script(plan: PlannedRequest, policy: Policy) -> Judgement:
    if plan.problem is not None:
        return Judgement(
            "deny", f"The script cannot be used: {plan.problem.rstrip('.')}. {_WHY_READ}", remedy=_WRITE_ONE
        )
    if plan.reading is None:
        return Judgement("deny", f"There is no script. {_WHY_READ}", remedy=_WRITE_ONE)
    size = len(plan.reading.text.encode("utf-8", "surrogateescape"))
    if size > policy.sizes.script_bytes:
        shown, most = human_memory(size), human_memory(policy.sizes.script_bytes)
        remedy = f"Shorten {plan.reading.path} to at most {most}: move data into files that it reads."
        return Judgement(
            "deny", f"The script has {shown}, more than {most}. {_WHY_READ}", size, policy.sizes.script_bytes, remedy
        )
    return passed(f"{plan.reading.path} was read.")


_LONG = ("python train.py", *["# 0.0731, 0.1182, 0.9077, 0.4410, 0.2265, 0.6698, 0.5023"] * 20)

_SMALL = Sizes.model_construct(script_bytes=2**10, result_bytes=2**20)

SCRIPT_EXISTS = Rule(
    id="script-exists",
    what="The script is a readable text file inside the project that starts with #!.",
    why=_WHY_READ,
    levels=("deny",),
    tools=SCRIPTS,
    judge=_judge_script,
    passing=(Example("a script", ("python train.py",), "pass"),),
    failing=(
        Example("a missing file", None, "deny", call={"problem": "scripts/train.sh does not exist"}),
        Example("no script at all", None, "deny"),
        Example("a script of more than 1K, where that is the limit", _LONG, "deny", fields={"sizes": _SMALL}),
    ),
    script=False,
)


# --- path: files are written only where the policy says, never over what is there -------------------------------------

_WHY = "An agent's work stays inside its project and destroys nothing there."

_LOG_FILES = {"output": ".out", "error": ".err"}


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    if plan.tool == "save_result" and plan.path is None:
        listed = ", ".join(policy.write.save_result.folders) or "no folder"
        message = f"save_result was given no file, and the policy lets it write into {listed}. {_WHY}"
        return Judgement("deny", message, None, listed, _elsewhere(policy.write.save_result.folders))
    file = passed("No file is named.") if plan.path is None else _file(plan, plan.path, policy)
    if file.outcome != "pass" or plan.reading is None:
        return file
    return _script(plan, plan.reading.request, policy)


def inside(path: str, folder: str) -> bool:
    """True where an absolute, normal path is `folder` or in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def protected_by(path: str, project: str, policy: Policy) -> str | None:
    """The pattern of the policy that protects this absolute path in the project."""
    relative = posixpath.relpath(path, project)
    names = (relative, posixpath.basename(path))
    return next((p for p in policy.protected if any(fnmatch.fnmatchcase(name, p) for name in names)), None)


def _file(plan: PlannedRequest, path: str, policy: Policy) -> Judgement:
    """A file that a tool of ours is about to write; links in the path are resolved already."""
    target = policy.write.save_result if plan.tool == "save_result" else policy.write.generate_script
    most = policy.sizes.result_bytes if plan.tool == "save_result" else policy.sizes.script_bytes
    real = posixpath.normpath(path)
    folders = [posixpath.normpath(posixpath.join(plan.project, folder)) for folder in target.folders]
    shown = posixpath.relpath(real, plan.project) if inside(real, plan.project) else real
    listed = ", ".join(f"{folder}/" for folder in target.folders) or "no folder"
    if not any(inside(real, folder) and real != folder for folder in folders):
        message = f"{plan.tool} may write into {listed} but not {shown}. {_WHY}"
        return Judgement("deny", message, shown, listed, _elsewhere(target.folders))
    pattern = protected_by(real, plan.project, policy)
    if pattern is not None:
        message = f"{shown} is protected by `{pattern}`. {_WHY}"
        return Judgement("deny", message, shown, pattern, _renamed(real))
    if plan.path_exists and not plan.adds:
        return Judgement("deny", f"{shown} exists already. {_WHY}", shown, None, _renamed(real))
    if plan.size is not None and plan.size > most:
        message = f"{shown} would have {human_memory(plan.size)}, more than {human_memory(most)}. {_WHY}"
        remedy = f"Save at most {human_memory(most)}: name large files in it instead of their content."
        return Judgement("deny", message, plan.size, most, remedy)
    return passed(f"{shown} may be written.", shown, listed)


def _elsewhere(folders: Sequence[str]) -> str:
    """Another folder, where the policy names one."""
    asked = "Ask a person: this policy names no folder that may be written."
    return call_again("output_dir", folders[0]) if folders else asked


def _renamed(path: str) -> str:
    name = re.sub(r"\W+", "-", posixpath.splitext(posixpath.basename(path))[0]).strip("-")
    return call_again("name", f"{name or 'result'}-2")


def _script(plan: PlannedRequest, request: JobRequest, policy: Policy) -> Judgement:
    """The folder and the logs that a script names; Slurm opens them on the node, by these very names."""
    project = posixpath.normpath(plan.project)
    leads = {} if plan.reading is None else plan.reading.leads
    work = posixpath.normpath(posixpath.join(project, request.chdir or ""))
    led = posixpath.normpath(posixpath.join(project, leads.get("chdir", work)))
    stays = inside(work, project) and inside(led, project)
    found = [] if stays else [_folder(project, work, led, request)]
    found += _logs(project, work if stays else project, leads, request, policy)
    if not found:
        return passed("The job's folder and logs stay inside the project.")
    limits = dict.fromkeys(one.limit for one in found)
    told = "; ".join(f"{one.what} {one.why}" for one in found)
    return Judgement(
        "deny",
        f"{told}. {_WHY}",
        found[0].observed,
        ", ".join(limits),
        "\n".join(dict.fromkeys(step for step in _steps(found) if step)),
        [evidence for one in found for evidence in _proof(one.stated)],
    )


@dataclass(frozen=True, slots=True)
class _Outside:
    """A folder or file that the script names where it may not, and the line that puts it elsewhere."""

    what: str
    why: str
    observed: str
    limit: str
    stated: tuple[Directive, ...]
    line: str


def _steps(found: Sequence[_Outside]) -> list[str]:
    """One step for each line; of several options on one line all at once."""
    places = [{directive.evidence for directive in one.stated if directive.source == "script"} for one in found]
    steps = []
    for number, one in enumerate(found):
        if any(places[number] & before for before in places[:number]):
            continue
        same = [other for other, at in zip(found, places, strict=True) if other is one or at & places[number]]
        stated = [directive for other in same for directive in other.stated]
        steps.append(replace(stated, *(other.line for other in same if other.line)))
    return steps


def _folder(project: str, work: str, led: str, request: JobRequest) -> _Outside:
    what, stated = f"The job's folder {work}", request.find("chdir")
    return _Outside(what, _why_not(work, led, project), what, project, stated, "#SBATCH --chdir=.")


def _why_not(path: str, led: str, limit: str) -> str:
    return f"lies outside {limit}" if path == led else f"leads over a link to {led}, which lies outside {limit}"


def _logs(project: str, work: str, leads: Mapping[str, str], request: JobRequest, policy: Policy) -> list[_Outside]:
    """The logs and the input that may not be where they are, seen from the job's folder."""
    folders, found = (project, *policy.log_folders), []
    inputs = request.find("input")
    named = {"output": request.output, "error": request.error, "input": inputs[-1].value if inputs else None}
    for option, value in named.items():
        if not value or value == "/dev/null":
            continue
        path = posixpath.normpath(posixpath.join(work, _expanded(value, request)))
        file = posixpath.normpath(posixpath.join(project, leads.get(option, path)))
        what, why = f"--{option}={value}", ""
        observed, limit = what, ", ".join(folders)
        for place in dict.fromkeys(
            (path, file)
        ):  # as it is written and where it leads: others may swap a link of theirs
            pattern = protected_by(place, project, policy) if inside(place, project) and option in _LOG_FILES else None
            if not any(inside(place, folder) for folder in folders):
                why = _why_not(path, place, limit)
            elif pattern is not None:
                why, observed, limit = f"would overwrite a file that `{pattern}` protects", value, pattern
        if why:
            line = _moved(option, request, policy, project, work)
            found.append(_Outside(what, why, observed, limit, request.find(option), line))
    return found


def _moved(option: str, request: JobRequest, policy: Policy, project: str, work: str) -> str:
    """The line that puts a log where it may be; nothing for an input."""
    if option not in _LOG_FILES:
        return ""
    for name in ("%x-%j", "slurm-%j", f"{project}/slurm-%j"):
        file = posixpath.normpath(posixpath.join(work, _expanded(f"{name}{_LOG_FILES[option]}", request)))
        if inside(file, project) and protected_by(file, project, policy) is None:
            return f"#SBATCH --{option}={name}{_LOG_FILES[option]}"
    return f"#SBATCH --{option}=/dev/null"


def _expanded(value: str, request: JobRequest) -> str:
    """A job's name may hold `..` or `/`: it counts where %x puts it."""
    return value.replace("%x", request.name) if request.name is not None and "/" in request.name else value


def _proof(stated: Sequence[Directive]) -> list[Evidence]:
    return [directive.evidence for directive in stated]


def _saves(path: str | None, **more: object) -> Mapping[str, object]:
    return {"tool": "save_result", "path": path, "size": 2000, **more}


def _generates(name: str, *, exists: bool = False) -> Mapping[str, object]:
    path = f"scripts/slurm/generated/{name}"
    return {"tool": "generate_script", "path": path, "path_exists": exists, "size": 200}


_GENERATED = ("#SBATCH --gpus=1", "python train.py")

PATH = Rule(
    id="path",
    what=(
        "save_result and generate_script write new files in the folders that the policy names, not over protected "
        "files, up to a size; a job's folder and logs stay inside the project or the policy's log folders, also "
        "where a link in the project leads."
    ),
    why=_WHY,
    levels=("deny",),
    tools=SCRIPTS | {"save_result"},
    judge=_judge,
    passing=(
        Example("a result in its folder", None, "pass", call=_saves("results/2026-01-15_12-00-00_base.json")),
        Example(
            "a line more in a file that is there",
            None,
            "pass",
            call=_saves("documents/failure-modes.md", path_exists=True, adds=True),
        ),
        Example("logs in the project", ("#SBATCH --output=logs/%j.out",), "pass"),
    ),
    failing=(
        Example("a result somewhere else", None, "deny", call=_saves("src/train.json")),
        Example("a result without a file", None, "deny", call=_saves(None)),
        Example(
            "a line more in a file that is protected",
            None,
            "deny",
            call=_saves("documents/.env", path_exists=True, adds=True),
        ),
        Example("a script over a protected file", _GENERATED, "deny", call=_generates("train.sbatch")),
        Example("a script that is there already", _GENERATED, "deny", call=_generates("train.sh", exists=True)),
        Example("a result that is too large", None, "deny", call=_saves("results/all.json", size=50 * 2**20)),
        Example("logs outside the project", ("#SBATCH --output=/scratch/%j.out",), "deny"),
        Example("a log over a protected file", ("#SBATCH --output=Makefile",), "deny"),
        Example("an input from elsewhere", ("#SBATCH --input=/etc/passwd", "python train.py"), "deny"),
        Example("another folder to run in", ("#SBATCH --chdir=/etc",), "deny"),
    ),
    script=False,
)
