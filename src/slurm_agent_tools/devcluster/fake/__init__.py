"""A Slurm in memory, for tests of what is built on these tools; see docs/concepts/fake-slurm.md."""
