"""`python -m slurm_agent_tools` is the command slurm-agent-tools."""

from __future__ import annotations

from slurm_agent_tools.cli.main import command

command()
