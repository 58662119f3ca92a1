#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

ray start --head --num-cpus=$SLURM_CPUS_PER_TASK --num-gpus=1 --block --disable-usage-stats &
sleep 10
python rllib_train.py --ray-address auto
ray stop
