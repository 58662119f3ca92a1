"""What jobs did before, and what that says about the next one. Pure but for `export`: reads records, asks no Slurm."""
