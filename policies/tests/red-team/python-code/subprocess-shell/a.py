import subprocess

for seed in range(3):
    subprocess.run(f"sbatch --export=SEED={seed} run.sh", shell=True, check=True)
