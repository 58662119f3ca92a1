import subprocess


def sh(line):
    return subprocess.run(line, shell=True, check=True)


sh("cd jobs && sbatch next.sh")
