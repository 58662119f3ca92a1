"""`python -m tools.agent_tools.validate_config`: the tool validate_config, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("validate_config"))
