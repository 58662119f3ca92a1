"""`python -m tools.agent_tools.save_result`: the tool save_result, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("save_result"))
