#!/bin/bash
#SBATCH --job-name=lm-pretrain
#SBATCH --nodes=1
#SBATCH --gpus-per-node=4
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --mem=64000M
#SBATCH --time=1-00:00:00
#SBATCH --output=logs/%x-%j.log

usage() {
  echo "Usage: $0 [-l layers] [-h hidden] [-s seed] [-r]" 1>&2
  exit 2
}

LAYERS=12
HIDDEN=768
SEED=1234
RESUME=0
while getopts ":l:h:s:r" opt; do
  case "${opt}" in
    l) LAYERS=${OPTARG} ;;
    h) HIDDEN=${OPTARG} ;;
    s) SEED=${OPTARG} ;;
    r) RESUME=1 ;;
    :) echo "option -$OPTARG needs a value"; usage ;;
    *) usage ;;
  esac
done
shift $((OPTIND-1))

log() { printf '%s | %s\n' "$(date +%H:%M:%S)" "$*"; }

ARGS=(
  --num-layers "$LAYERS"
  --hidden-size "$HIDDEN"
  --num-attention-heads $(( HIDDEN / 64 ))
  --seed "$SEED"
  --seq-length 1024
  --micro-batch-size 8
  --global-batch-size 256
  --train-iters 100000
)
if (( RESUME )); then
  ARGS+=( --load "ckpt/l${LAYERS}h${HIDDEN}" )
fi

log "starting with ${ARGS[*]}"
torchrun --standalone --nproc_per_node="$SLURM_GPUS_ON_NODE" pretrain_gpt.py "${ARGS[@]}"
log "done with status $?"
