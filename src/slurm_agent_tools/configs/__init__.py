"""Experiment configurations: reading with line numbers, checks that hold anywhere, and their `slurm:` section. Pure."""

from __future__ import annotations

from slurm_agent_tools.configs.checks import check
from slurm_agent_tools.configs.inputs import paths
from slurm_agent_tools.configs.reading import Config, parse
from slurm_agent_tools.configs.schema import FILE as SCHEMA
from slurm_agent_tools.configs.schema import Unusable, against
from slurm_agent_tools.configs.section import slurm_script, slurm_section
from slurm_agent_tools.configs.telling import complaint, retold

__all__ = [
    "SCHEMA", "Config", "Unusable", "against", "check", "complaint", "parse", "paths", "retold", "slurm_script",
    "slurm_section",
]  # fmt: skip
