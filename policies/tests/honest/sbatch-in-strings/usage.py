"""Usage: sbatch run.sh --config conf.yaml."""
import argparse
import os
import shutil

p = argparse.ArgumentParser(description="submit this with sbatch run.sh", epilog="sbatch run.sh")
p.add_argument("--note", default="", help="sbatch --export works too")
args = p.parse_args()
if shutil.which("sbatch") is None:
    print("no sbatch here, so this is no cluster")
if "SLURM_JOB_ID" not in os.environ:
    raise SystemExit("run it by: sbatch run.sh")
print("inside of job", os.environ["SLURM_JOB_ID"])
