#!/bin/bash
#SBATCH --job-name=launcher-appended-lines
#SBATCH --partition=gpu
#SBATCH --nodes=1
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=16G
#SBATCH --time=04:00:00
#SBATCH --output=logs/%x-%j.out
echo '#!/bin/bash' > step.sh
echo 'export \' >> step.sh
echo '  CUDA_VISIBLE_DEVICES=1' >> step.sh
echo 'python train.py' >> step.sh
source step.sh
