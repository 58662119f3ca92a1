#!/bin/bash
#SBATCH --job-name=sd-lora
#SBATCH --gpus=1
#SBATCH --mem=15G
#SBATCH --time=05:00:00
#SBATCH --output=logs/%j.txt

export APPTAINER_CACHEDIR=$TMPDIR/apptainer-cache
export APPTAINER_TMPDIR=$TMPDIR
SIF=containers/pytorch_24.03.sif

if [ ! -f "$SIF" ]; then
  mkdir -p containers
  apptainer pull "$SIF" docker://nvcr.io/nvidia/pytorch:24.03-py3
fi

apptainer exec --nv \
  --bind "$PWD:/workspace" \
  --bind "$HOME/datasets:/data:ro" \
  --env HF_HOME=/workspace/.hf,WANDB_MODE=offline \
  --pwd /workspace \
  "$SIF" \
  python train_text_to_image_lora.py \
    --train_data_dir /data/pokemon \
    --resolution 512 --train_batch_size 1 --gradient_accumulation_steps 4 \
    --checkpointing_steps 500 --output_dir /workspace/sd-lora
