"""`python -m tools.agent_tools.sync_files`: the tool sync_files, its JSON document on standard output."""

from slurm_agent_tools.cli.main import tool_main, whole

if __name__ == "__main__":
    whole(lambda: tool_main("sync_files"))
