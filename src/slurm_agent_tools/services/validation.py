"""validate_config: what is checked and judged, and never written."""

from __future__ import annotations

import json
import os
import posixpath
import sys
from collections.abc import Mapping

from slurm_agent_tools.backends import input_files
from slurm_agent_tools.models.arguments import ValidateConfig
from slurm_agent_tools.models.decision import DecisionShown, decision_shown
from slurm_agent_tools.models.submission_answer import Complaint, ValidateReply
from slurm_agent_tools.scripts.configs import experiment_config
from slurm_agent_tools.scripts.configs.checks import config_checks, schema_check
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.services import project_paths
from slurm_agent_tools.services.context import ClusterContext, ProjectFiles
from slurm_agent_tools.services.generation import judge_script, refused
from slurm_agent_tools.transport import process
from slurm_agent_tools.units import how_many

_LARGEST = 2**20

_NEEDED = ("HOME", "PYTHONHOME", "PYTHONPATH", "SYSTEMROOT")  # by which Python finds its modules, and begins on Windows

_SIMPLER = "Simplify its patterns and its nested forms."


async def complaints_of_schema(data: bytes, suffix: str, schema: bytes) -> list[Complaint]:
    """What the schema says against the configuration. Raises configs.Unusable."""
    argv = [sys.executable, "-P", "-m", schema_check.__name__, suffix, str(len(data))]
    env = {name: os.environ[name] for name in _NEEDED if name in os.environ}
    seconds = schema_check.SECONDS  # nothing in the working folder, which may be the project, is a module: -P
    done = await process.run(argv, stdin=data + schema, env=env, cwd=os.sep, timeout=seconds, max_output=_LARGEST)
    if done.exit_code is None:
        raise schema_check.UnusableSchema(f"takes longer than {schema_check.SECONDS} s to check against", _SIMPLER)
    if done.exit_code != 0 or done.truncated:
        raise schema_check.UnusableSchema("cannot be checked against: the check of it broke off", _SIMPLER)
    told = json.loads(done.stdout)
    if "problem" in told:
        raise schema_check.UnusableSchema(told["problem"], told["hint"])
    return [Complaint(**complaint) for complaint in told["complaints"]]


_CONFIG_LIMIT = 5 * 2**20


async def validate_config(context: ClusterContext, ask: ValidateConfig) -> ValidateReply:
    """Check one file; changes nothing. Raises InputError."""
    project_files = await project_paths.either(context, "config_path", ask.config_path)
    real, data = await project_paths.read_file(project_files, "config_path", ask.config_path, limit=_CONFIG_LIMIT)
    shown = project_paths.relative(project_files, real)
    if data.startswith(b"#!") or real.endswith((".sh", ".sbatch", ".slurm")):
        _, data = await project_paths.read_script(project_files, "config_path", ask.config_path, limit=_CONFIG_LIMIT)
        decision = decision_shown(await judge_script(context, data, shown))
        warnings, listed = await input_files.manifest(
            context.there.files, context.there.root, (await project_paths.read(context, data, shown, read_script))[0],
            far=context.elsewhere is not None, brief=ask.detail == "brief",
        )  # fmt: skip
        failed, ran = await _dry_run(context, shown)
        summary = {"kind": "batch script", **listed, **ran}
        return _validated(context, ask, [*_against(decision), *failed], warnings, summary, decision)
    schema = await _schema(project_files)
    if shown == schema_check.FILE:
        await complaints_of_schema(b"{}", ".json", data)
        return _validated(context, ask, [], [], {"kind": "JSON Schema"}, None)
    config = experiment_config.parse_config(data, posixpath.splitext(real)[1], shown)
    present = {path: await _present(context.there, path) for path in experiment_config.input_paths(config)}
    errors, warnings, summary = config_checks.check_config(config, present, shaped=schema is not None)
    if schema is not None:
        errors = [*await complaints_of_schema(data, posixpath.splitext(real)[1], schema), *errors]
        summary["schema"] = schema_check.FILE
    failed, ran = await _dry_run(context, shown)
    errors, summary = [*errors, *failed], {**summary, **ran}
    section = config_checks.slurm_section(config)
    if section is None:
        return _validated(context, ask, errors, warnings, summary, None)
    judged = decision_shown(await judge_script(context, config_checks.slurm_script(section).encode(), shown))
    judged = judged.model_copy(update={"rules": config_checks.in_section_terms(config, judged.rules)})
    errors += [config_checks.rule_complaint(config, rule) for rule in refused(judged)]
    return _validated(context, ask, errors, warnings, summary, judged)


async def _dry_run(context: ClusterContext, shown: str) -> tuple[list[Complaint], dict[str, object]]:
    """What the project's own check says, where the settings name one."""
    named = f"./{shown}" if shown.startswith("-") else shown  # never taken for an option
    argv = [word.replace("{path}", named) for word in context.settings.dry_run]
    env = {name: os.environ[name] for name in context.policy.policy.pass_environment if name in os.environ}
    return await input_files.dry_run(argv, env, context.here.root) if argv else ([], {})


async def _schema(project_files: ProjectFiles) -> bytes | None:
    """The project's own schema for its configurations, where it has one. One that cannot be read is an error."""
    real = await project_paths.resolve(project_files, "schema", schema_check.FILE)
    if await project_files.files.stat(real) is None:
        return None
    return (await project_paths.read_file(project_files, "schema", schema_check.FILE, limit=_CONFIG_LIMIT))[1]


async def _present(project_files: ProjectFiles, path: str) -> bool:
    full = path if posixpath.isabs(path) else posixpath.join(project_files.root, path)
    return await project_files.files.stat(await project_files.files.real_path(full)) is not None


def _against(decision: DecisionShown) -> list[Complaint]:
    """What the guard has against a batch script."""
    return [
        Complaint(
            path=rule.id,
            line=rule.evidence[0].line if rule.evidence else None,
            message=rule.message,
            remedy=(rule.remedy or "").replace("Call again with ", "Call submit_job with "),
        )
        for rule in refused(decision)
    ]


def _validated(
    context: ClusterContext,
    ask: ValidateConfig,
    errors: list[Complaint],
    warnings: list[Complaint],
    summary: Mapping[str, object],
    decision: DecisionShown | None,
) -> ValidateReply:
    invalid = bool(errors) or (ask.strict and bool(warnings))
    verdict = "not valid" if invalid else "valid"
    counts = f"{how_many(len(errors), 'error')}, {how_many(len(warnings), 'warning')}"
    return ValidateReply(
        status="invalid" if invalid else "valid",
        summary=f"{ask.config_path} is {verdict}: {counts}.",
        as_of=context.clock.now(),
        errors=errors,
        warnings=warnings,
        config_summary=dict(summary),
        decision=decision,
    )
