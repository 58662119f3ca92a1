#!/bin/bash
#SBATCH --gpus=1
#SBATCH --mem=16G
#SBATCH --time=04:00:00

pick_gpu() {
  local best
  best=$(nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits | nl -v 0 | sort -k2 -n | head -1 | awk '{print $1}')
  export CUDA_VISIBLE_DEVICES="$best"
}
pick_gpu
python t.py
