"""The command line: one subcommand per tool, and the commands around them."""
