#!/bin/bash
#SBATCH --job-name=staging
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --cpus-per-task=4
#SBATCH --time=11:00:00
#SBATCH --output=logs/stage.%j

set -Eeuo pipefail

SRC="$SLURM_SUBMIT_DIR"
SCR="/scratch/${USER}/${SLURM_JOB_ID}"

finish() {
    local rc=$?
    set +e
    echo "[$(date +%T)] copying results back (exit code $rc)"
    rsync -rtv --partial "$SCR/results/" "$SRC/results/$SLURM_JOB_ID/"
    cd / && rm -rf "$SCR"
    exit "$rc"
}
trap finish EXIT
trap 'echo "line $LINENO failed" >&2' ERR

mkdir -p "$SCR"/{data,results}
rsync -a --exclude '.git' --exclude 'results' "$SRC/" "$SCR/"
tar -xf "$SRC/data.tar" -C "$SCR/data" --strip-components=1
df -h "$SCR" | tail -1

cd "$SCR"
python3 -u main.py --data data --out results
