"""What the fake Slurm prints: one module per Slurm command, and the table of them."""
