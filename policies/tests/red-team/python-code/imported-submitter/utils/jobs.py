import subprocess


def go():
    subprocess.run(["sbatch", "more.sh"])
