"""`python -m tools.agent_tools.generate_script`: the tool generate_script, its JSON document on standard output."""

from slurm_agent_tools.cli import tool_main

if __name__ == "__main__":
    raise SystemExit(tool_main("generate_script"))
