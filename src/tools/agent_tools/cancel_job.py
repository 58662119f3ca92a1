"""`python -m tools.agent_tools.cancel_job`: the tool cancel_job, its JSON document on standard output."""

from slurm_agent_tools.cli import tool_main

if __name__ == "__main__":
    raise SystemExit(tool_main("cancel_job"))
