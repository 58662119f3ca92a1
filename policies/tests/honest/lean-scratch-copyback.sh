#!/bin/bash -l
#SBATCH -J job
#SBATCH -p gpu
#SBATCH --gres=gpu:1
#SBATCH --mem=12G
#SBATCH -t 2:00:00
cp -r in "$TMPDIR"
cd "$TMPDIR"
"$SLURM_SUBMIT_DIR"/bin/solver in/case.cfg
rc=$?
cp -r out "$SLURM_SUBMIT_DIR/out_$SLURM_JOB_ID"
exit $rc
