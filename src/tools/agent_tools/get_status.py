"""`python -m tools.agent_tools.get_status`: the tool get_status, its JSON document on standard output."""

from slurm_agent_tools.cli import tool_main

if __name__ == "__main__":
    raise SystemExit(tool_main("get_status"))
