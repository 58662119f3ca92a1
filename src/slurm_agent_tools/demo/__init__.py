"""The demo: the whole way on a private Slurm, each step checked against what Slurm itself says."""
