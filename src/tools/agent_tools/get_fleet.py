"""`python -m tools.agent_tools.get_fleet`: the tool get_fleet, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("get_fleet"))
