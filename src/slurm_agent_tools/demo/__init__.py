"""The subcommand `demo`: the whole way on a private Slurm, each step checked against what Slurm itself says."""

from slurm_agent_tools.demo.main import add_arguments, run

__all__ = ["add_arguments", "run"]
