"""`python -m tools.agent_tools.analyze_log`: the tool analyze_log, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("analyze_log"))
