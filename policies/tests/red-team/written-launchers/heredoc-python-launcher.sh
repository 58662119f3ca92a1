#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

cat > go.py <<EOF
import subprocess
subprocess.run(["sbatch", "next.sh"])
EOF
python3 go.py
