#!/bin/bash
#SBATCH --job-name=argpass
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=06:00:00
#SBATCH --output=logs/%x-%j.out

echo "arguments: $*"
cd "$(git rev-parse --show-toplevel)" || exit
git log -1 --format='%h %s (%cr)'
git diff --stat HEAD | tail -1
( set -x; python -u train.py --seed "${SEED:-0}" "$@" )
time {
    python -u eval.py --last "$@"
    python -u plot.py
}
