"""`python -m tools.agent_tools.compare_results`: the tool compare_results, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("compare_results"))
