#!/bin/bash
#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=8G
#SBATCH --time=0-12

cat > ds_config.json <<EOF
{"train_batch_size": ${BATCH:-64}, "fp16": {"enabled": true}, "zero_optimization": {"stage": 2}}
EOF
deepspeed --num_gpus=1 train.py --deepspeed ds_config.json
