"""A private real Slurm on this machine, for trying and testing."""
