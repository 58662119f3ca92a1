"""Guarded Slurm tools for coding agents, over MCP and as a command line."""

__version__ = "0.1.0"
