"""The output of jobs: where it is, which parts of it are read, and what matters in a long one."""
