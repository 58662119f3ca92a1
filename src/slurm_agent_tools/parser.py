"""The parser of the commands around the tools."""

from __future__ import annotations

import argparse
from typing import NoReturn

from slurm_agent_tools.errors import InputError


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are our errors."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError where argparse would print and exit."""
        raise InputError("arguments", self.prog, message, hint=self.format_usage().strip())
