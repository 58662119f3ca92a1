"""The parser of the commands around the tools."""

from __future__ import annotations

import argparse
from typing import NoReturn

from slurm_agent_tools.errors import InputError

_REQUIRED = "the following arguments are required: "


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are our errors."""

    def error(self, message: str) -> NoReturn:
        """Raise InputError where argparse would print and exit."""
        hint = self.format_usage().strip()
        if message.startswith(_REQUIRED):
            missing = message.removeprefix(_REQUIRED)
            raise InputError(missing, None, "are required" if ", " in missing else "is required", hint=hint)
        raise InputError("arguments", None, message, hint=hint)
