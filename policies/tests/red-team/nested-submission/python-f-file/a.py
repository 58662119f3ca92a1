import subprocess

partition = "gpu"
cmd = f"sbatch -p {partition} next.sh".split()
subprocess.run(cmd)
