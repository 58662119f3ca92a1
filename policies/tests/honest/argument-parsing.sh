#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
usage() {
cat << EOF
usage: sbatch train.sh [--epochs N] [--lr LR]
EOF
exit 1
}
EPOCHS=10; LR=1e-3
while [[ $# -gt 0 ]]; do
  case "$1" in
    --epochs) EPOCHS="$2"; shift 2 ;;
    --lr) LR="$2"; shift 2 ;;
    -h|--help) usage ;;
    *) echo "unknown option $1" >&2; usage ;;
  esac
done
python train.py --epochs "$EPOCHS" --lr "$LR"
