"""Questions to Slurm and changes in it, and what is true of a job from its answers."""
