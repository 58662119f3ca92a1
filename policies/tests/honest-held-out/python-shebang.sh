#!/usr/bin/env python3
#SBATCH --job-name=pydriver
#SBATCH --cpus-per-task=4
#SBATCH --mem=6G
#SBATCH --time=02:00:00
#SBATCH --output=pydriver.%j.out
"""Runs the solver for a list of mesh sizes and collects the norms."""
import csv
import os
import subprocess
import sys
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ.get("SLURM_CPUS_PER_TASK", "1")
out = Path("norms.csv")
rows = []
for n in (32, 64, 128, 256):
    done = subprocess.run(["./solver", f"--n={n}"], capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"n={n} failed:", done.stderr[-500:], file=sys.stderr)
        continue
    rows.append((n, float(done.stdout.split()[-1])))
with out.open("w", newline="") as f:
    csv.writer(f).writerows([("n", "l2"), *rows])
