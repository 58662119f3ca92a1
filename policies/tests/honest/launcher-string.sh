#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

export LAUNCHER="python -u -m torch.distributed.run --nproc_per_node 1 --nnodes $SLURM_NNODES --rdzv_backend c10d --max_restarts 0 --tee 3"
export CMD="pretrain.py --config conf/base.yaml --seed 42"
srun --jobid $SLURM_JOB_ID bash -c "$LAUNCHER --node_rank \$SLURM_PROCID $CMD" 2>&1 | tee -a main.log
