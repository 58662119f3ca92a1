"""What the cluster has, what of it is free or idle, what it costs, who waits: pure, over what `slurm` read."""
