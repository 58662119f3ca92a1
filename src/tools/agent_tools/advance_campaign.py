"""`python -m tools.agent_tools.advance_campaign`: the tool advance_campaign, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("advance_campaign"))
