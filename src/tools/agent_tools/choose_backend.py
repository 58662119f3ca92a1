"""`python -m tools.agent_tools.choose_backend`: the tool choose_backend, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("choose_backend"))
