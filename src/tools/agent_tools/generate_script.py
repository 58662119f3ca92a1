"""`python -m tools.agent_tools.generate_script`: the tool generate_script, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("generate_script"))
