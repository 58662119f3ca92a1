#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

log() { printf '[%(%F %T)T] %s\n' -1 "$*"; }
die() { log "ERROR: $*" >&2; exit 1; }
run() { log "+ $*"; "$@"; }
run python prep.py
run python train.py --epochs 3
[ -s model.pt ] || die "no model"
