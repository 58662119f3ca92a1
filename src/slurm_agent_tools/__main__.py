"""`python -m slurm_agent_tools` is the command slurm-agent-tools."""

from slurm_agent_tools.cli import command

command()
