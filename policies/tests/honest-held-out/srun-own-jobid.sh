#!/bin/bash
#SBATCH --job-name=monitor
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=05:00:00
#SBATCH --output=monitor-%j.out

python long_run.py --config cfg.toml &
work=$!
while kill -0 $work 2>/dev/null; do
    srun --jobid $SLURM_JOB_ID --overlap -n 1 nvidia-smi --query-gpu=utilization.gpu,memory.used --format=csv,noheader >> util.$SLURM_JOB_ID.csv
    sleep 300
done
wait $work
