#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

WORK=$TMPDIR/run
mkdir -p "$WORK"
cleanup() {
  rsync -a "$WORK/out/" "$SLURM_SUBMIT_DIR/out/" || true
  rm -rf "$WORK"
}
trap cleanup EXIT
rsync -a --exclude .git ./ "$WORK/"
tar -xf /data/coco.tar -C "$WORK"
cd "$WORK"
python detect.py --data ./coco --out ./out
