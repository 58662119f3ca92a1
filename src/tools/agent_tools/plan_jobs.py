"""`python -m tools.agent_tools.plan_jobs`: the tool plan_jobs, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("plan_jobs"))
