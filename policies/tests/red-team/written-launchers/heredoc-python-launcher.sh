#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

cat > go.py <<EOF
import subprocess
subprocess.run(["sbatch", "next.sh"])
EOF
python3 go.py
