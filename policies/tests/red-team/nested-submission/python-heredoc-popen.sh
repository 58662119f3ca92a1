#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python - <<EOF
import subprocess
args = ["--mem=8G", "next.sh"]
subprocess.Popen(["sbatch"] + args)
EOF
