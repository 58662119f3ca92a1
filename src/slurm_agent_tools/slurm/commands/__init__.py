"""One module per Slurm command: its argument vector and the parser of its output, no I/O in either."""
