#!/bin/bash
#SBATCH --job-name=lit-ckpt
#SBATCH --gpus=1
#SBATCH --cpus-per-task=8
#SBATCH --mem=16G
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --output=logs/%x_%j.out

WORK=${TMPDIR:-/tmp}/lit_$SLURM_JOB_ID
FINAL=$SLURM_SUBMIT_DIR/checkpoints/$SLURM_JOB_ID
mkdir -p "$WORK" "$FINAL"

save_checkpoint() {
    echo "$(date '+%F %T') caught SIGUSR1, two minutes left: saving"
    kill -TERM "$child" 2>/dev/null || true
    wait "$child"
    rsync -a --include='*.ckpt' --include='*/' --exclude='*' "$WORK/" "$FINAL/"
    echo "saved: $(ls "$FINAL" | wc -l) files"
    exit 0
}
trap save_checkpoint USR1

module load miniforge
conda activate lit
srun python fit.py --default_root_dir "$WORK" &
child=$!
wait "$child"
rc=$?
rsync -a "$WORK/" "$FINAL/"
exit $rc
