"""Experiment configurations: reading with line numbers, checks that hold anywhere, and their `slurm:` section. Pure."""

from __future__ import annotations

from slurm_agent_tools.configs.checks import check
from slurm_agent_tools.configs.inputs import paths
from slurm_agent_tools.configs.reading import Config, parse
from slurm_agent_tools.configs.schema import FILE as SCHEMA
from slurm_agent_tools.configs.schema import against
from slurm_agent_tools.configs.section import slurm_script, slurm_section

__all__ = ["SCHEMA", "Config", "against", "check", "parse", "paths", "slurm_script", "slurm_section"]
