import subprocess


class Runner:
    binary = "sbatch"

    def go(self, path):
        return subprocess.run([self.binary, path], check=True)


Runner().go("next.sh")
