"""`python -m tools.agent_tools.wait_for_job`: the tool wait_for_job, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("wait_for_job"))
