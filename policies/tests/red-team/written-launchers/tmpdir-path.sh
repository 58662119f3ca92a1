#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

cat > "$TMPDIR/next.sh" <<EOF
sbatch $HOME/more.sh
EOF
bash "$TMPDIR/next.sh"
