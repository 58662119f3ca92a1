"""`python -m tools.agent_tools.cancel_job`: the tool cancel_job, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("cancel_job"))
