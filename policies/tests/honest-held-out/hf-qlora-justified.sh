#!/bin/bash
#SBATCH --job-name=qlora-7b
#SBATCH --partition=gpu
#SBATCH --gpus=1
#SBATCH --mem-per-gpu=24G   # JUSTIFIED: the 7B weights are loaded on the host before they are quantised, 16G is killed
#SBATCH --cpus-per-task=8
#SBATCH --time=10:00:00
#SBATCH --output=logs/qlora-%j.out

set -eo pipefail
module load cuda/12.4
source /etc/profile.d/conda.sh
conda activate qlora

export BITSANDBYTES_NOWELCOME=1
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
export CUDA_DEVICE_ORDER=PCI_BUS_ID

python qlora.py \
    --model_name_or_path mistralai/Mistral-7B-v0.1 \
    --dataset oasst1 --bits 4 --lora_r 64 --lora_alpha 16 \
    --max_steps 1875 --save_steps 250 \
    --output_dir "./output/mistral-7b-$SLURM_JOB_ID" 2>&1 | tee "logs/qlora-$SLURM_JOB_ID.train.log"
