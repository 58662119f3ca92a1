#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

dd of=n.sh status=none <<'EOF'
sbatch more.sh
EOF
. ./n.sh
