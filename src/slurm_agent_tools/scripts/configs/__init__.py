"""The configurations of experiments: reading with line numbers, checks that hold anywhere, their `slurm:` section."""
