"""Guarded Slurm tools for coding agents, over MCP and as a command line."""

import sys

__version__ = "0.1.0"

# `python -m` puts the working folder before Python's own library. It goes before anything, __future__ too, is found.
if sys.argv[:1] == ["-m"] and sys.orig_argv[-len(sys.argv)].startswith(__name__) and not sys.flags.safe_path:
    del sys.path[0]
