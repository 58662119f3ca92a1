#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

python - <<'EOF'
import os
os.environ["{}_VISIBLE_DEVICES".format("CUDA")] = "1"
EOF
