import subprocess

out = subprocess.check_output(["sbatch", "--parsable", "next.sh"], text=True)
