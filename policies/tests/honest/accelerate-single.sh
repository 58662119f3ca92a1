#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

accelerate launch --config_file acc.yaml --num_processes 1 --mixed_precision fp16 sft.py --model_name mistral --max_steps 500
