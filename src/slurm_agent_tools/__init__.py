"""Guarded Slurm tools for coding agents, over MCP and as a command line."""

from __future__ import annotations

__version__ = "0.1.0"
