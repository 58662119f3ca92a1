"""`policy test`: cases in YAML, each a script or a request and what the policy is expected to say about it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import anyio
import yaml
from pydantic import Field, ValidationError

from slurm_agent_tools.api import printing, render
from slurm_agent_tools.cli.commands.policy_check import check, check_bytes
from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.models.decision import Decision
from slurm_agent_tools.policy.document import SETTABLE, VIOLATIONS, Part
from slurm_agent_tools.policy.loading import LoadedPolicy, load, shipped
from slurm_agent_tools.settings import Settings
from slurm_agent_tools.text import safe_open, yaml_documents
from slurm_agent_tools.text.bounded_documents import DocumentError, decoded

DONE, FAILED = 0, 1

_LARGEST = 2**20


class ExpectedDecision(Part):
    """What the policy should say. `rules`: those that must have spoken (warn, justify, approve or deny)."""

    verdict: Literal["allow", "justify", "approve", "deny"]
    rules: tuple[str, ...] = ()


class PolicyCase(Part):
    """One case. `script`: a path relative to the file of cases, or the script itself; or `request`: sbatch options."""

    name: str = Field(min_length=1)
    script: str | None = None
    request: dict[str, str | int] | None = None
    justification: str | None = None
    expect: ExpectedDecision


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `policy test`."""
    parser.description = (
        "Run the cases in policies/tests/*.yaml, or in the files that are named, without a cluster. A project without"
        " cases runs those that ship with slurm-agent-tools, against the policy that ships with it."
    )
    parser.add_argument("files", nargs="*", metavar="FILE")
    parser.add_argument("--verbose", action="store_true", help="print every case, not only those that differ")


def run(args: argparse.Namespace, loaded: LoadedPolicy, settings: Settings) -> int:
    """Print what differs; 0 when every case is as expected, else 1. Raises ConfigError."""
    paths = [Path(name) for name in args.files] or _found(settings.project_root / "policies/tests")
    if not paths:
        paths, loaded = _found(_shipped()), load(shipped())
        settings = settings.model_copy(
            update={"project_root": _shipped()}
        )  # where the files lie that those scripts run
    done, wrong, spoken = 0, 0, set[str]()
    for path in paths:
        for case in read(path):
            decision = judge_case(case, path, loaded, settings)
            problem = difference(case, decision)
            done, wrong = done + 1, wrong + (problem is not None)
            spoken |= decision_text(decision)
            if problem is not None or args.verbose:
                mark = "differs" if problem else "ok"
                printing.lines([render.plain(f"{mark}  {path}: {case.name}{': ' + problem if problem else ''}")])
    silent = [rule for rule in SETTABLE if rule not in spoken]
    unused = ", ".join(silent) or "none"
    printing.lines([f"{done - wrong} of {done} cases are as expected. Rules that refuse none of them: {unused}."])
    return FAILED if wrong else DONE


def _found(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.yaml"))


def _shipped() -> Path:
    """The folder of our own cases: in the wheel, or in the repository in an editable install."""
    asset = Path(__file__).parents[2] / "assets" / "policy-tests"
    return asset if asset.is_dir() else Path(__file__).parents[4] / "policies" / "tests"


def read(path: Path) -> Iterator[PolicyCase]:
    """The cases in a file: a list, or a list under `cases`. Raises ConfigError naming the case."""
    try:
        found = yaml_documents.load(decoded(safe_open.read(path, _LARGEST)))
    except (OSError, DocumentError, yaml.YAMLError) as error:
        raise ConfigError("files", str(path), f"cannot be read: {error}", hint="Mend the file.") from error
    listed = found.get("cases") if isinstance(found, dict) else found
    if not isinstance(listed, list):
        raise ConfigError("files", str(path), "holds no list of cases", hint="Write `- name: ...` items.")
    for number, item in enumerate(listed, 1):
        try:
            yield PolicyCase.model_validate(item)
        except ValidationError as error:
            first = error.errors()[0]
            field = ".".join(str(part) for part in first["loc"])
            where = f"case {number} of {path}"
            raise ConfigError(
                field, first.get("input"), f"{first['msg']} ({where})", hint=f"Correct {where}."
            ) from error


def judge_case(case: PolicyCase, path: Path, loaded: LoadedPolicy, settings: Settings) -> Decision:
    """What the policy says about one case."""
    project = str(settings.project_root.resolve())
    if case.script is not None and "\n" not in case.script:
        return anyio.run(check, str(path.parent / case.script), loaded, settings)
    text = case.script if case.script is not None else _script(case.request or {})

    async def inline() -> Decision:
        data = text.encode()
        return await check_bytes(data, "case.sh", loaded, project=project, justification=case.justification)

    return anyio.run(inline)


def _script(request: Mapping[str, Any]) -> str:
    """A batch script that asks for these options and does nothing."""
    lines = [f"#SBATCH --{name}={value}" if value != "" else f"#SBATCH --{name}" for name, value in request.items()]
    return "\n".join(["#!/bin/bash", *lines, "hostname", ""])


def decision_text(decision: Decision) -> set[str]:
    """The rules that have something against it."""
    return {rule.id for rule in decision.rules if rule.outcome in VIOLATIONS}


def difference(case: PolicyCase, decision: Decision) -> str | None:
    """How the decision differs from what is expected, or None."""
    if decision.verdict != case.expect.verdict:
        why = "; ".join(f"{rule.id}: {rule.message}" for rule in decision.rules if rule.outcome in VIOLATIONS)
        return f"is {decision.verdict}, expected {case.expect.verdict}{f' ({why})' if why else ''}"
    silent = {rule for rule in case.expect.rules if rule not in decision_text(decision) | _warned(decision)}
    return f"{', '.join(sorted(silent))} did not speak" if silent else None


def _warned(decision: Decision) -> set[str]:
    return {rule.id for rule in decision.rules if rule.outcome == "warn"}
