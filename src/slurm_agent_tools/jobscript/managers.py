"""Programs that start other work by a plan of their own: workflow managers, make, systemd."""

from __future__ import annotations

import re

from slurm_agent_tools.jobscript.call import Call, options
from slurm_agent_tools.jobscript.program import File


def workflows(call: Call) -> None:
    """Workflow managers that submit jobs, and wrappers that try again."""
    if call.name in {"retry", "autorestart", "supervisord", "forever"}:
        call.program.find("auto-retry", "it runs a command again when it fails", call.line)
    if call.name == "cylc" and call.rest[:1] in (["play"], ["vip"], ["run"], ["restart"]):
        call.program.find("direct-submission", "it plays a workflow of Cylc, which submits its jobs", call.line)
    _settings(call)
    for word, value in options(call.rest):
        if word in {
            "--retries",
            "--restart-times",
            "-T",
            "--errorStrategy",
            "-process.errorStrategy",
        } and value not in {"0", "terminate"}:
            call.program.find("auto-retry", f"{call.name} {word} starts failed work again", call.line)
        slurm = word in {"--slurm", "--cluster", "--cluster-generic-submit-cmd", "--cluster-sync", "--drmaa"}
        if slurm or (word.strip("-") in {"profile", "executor", "e", "process.executor"} and "slurm" in value.lower()):
            call.program.find("direct-submission", f"{call.name} {word} submits jobs by itself", call.line)


def _settings(call: Call) -> None:
    """Files with a workflow manager's settings."""
    if call.name == "nextflow":
        call.program.files.append(File("config", "nextflow.config", call.line))
    for word, value in options(call.rest):
        if word in {"-c", "-C", "-config"} and call.name == "nextflow":
            call.program.files.append(File("config", value, call.line))
        elif word in {"--profile", "--workflow-profile"} and call.name == "snakemake":
            call.program.files.append(File("config", f"{value}/config.yaml", call.line))


def makes(call: Call) -> None:
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
        call.program.files.append(File("make", f"{folder}/{name}" if folder else name, call.line, tuple(goals)))


def unit(call: Call) -> None:
    """systemd-run, which may start a service again."""
    for word in call.rest:
        restart = re.search(r"Restart=(\S+)", word)
        if restart is not None and restart[1] != "no":
            call.program.find("auto-retry", f"it runs a service with {restart[0]}", call.line)
